# SPDX-License-Identifier: Apache-2.0
"""The second programs whose tensors are known: made after the rules were mended by the first."""
import copy

import labels as battery
import torch
from labels import program
from torch import nn
from torch.nn import functional as F


def draw(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


class Encoder(nn.Module):
    """A block with PyTorch's fused attention."""

    def __init__(self, width, heads=6):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x, cache=None):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(self.norms[0](x)).chunk(3, 2))
        if cache is not None:
            keys, values, place = cache
            keys[:, :, place:place + k.shape[2]] = k
            values[:, :, place:place + v.shape[2]] = v
            k, v = keys[:, :, :place + k.shape[2]], values[:, :, :place + v.shape[2]]
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


@program()
def images(labels):
    """All in bf16; marks in the middle of both passes."""
    model = nn.Sequential(nn.Conv2d(3, 384, 16, stride=16), nn.Flatten(2), nn.Linear(196, 196),
                          *(Encoder(196, 4) for _ in range(5)), nn.Flatten(),
                          nn.Linear(384 * 196, 100)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    state = {"step": 0}

    def mark(*_):
        if state["step"] == 3:
            labels.mark(model, optimizer, state["batch"])

    model[5].mlp.register_forward_hook(mark)
    model[4].register_full_backward_hook(mark)
    for step in range(6):
        state.update(step=step, batch=[draw(8, 3, 224, 224, dtype=torch.bfloat16),
                                       torch.randint(100, (8,)).cuda()])
        loss = F.cross_entropy(model(state["batch"][0]).float(), state["batch"][1])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        mark()
        optimizer.step()


@program()
def answers(labels):
    """A cache that is made once, and filled in place, by three prompts."""
    words, head = nn.Embedding(2000, 384), nn.Linear(384, 2000)
    blocks = nn.ModuleList(Encoder(384) for _ in range(4))
    model = nn.ModuleList([words, blocks, head]).cuda().half().eval()
    caches = [draw(2, 2, 6, 512, 64, dtype=torch.float16) for _ in blocks]
    with torch.inference_mode():
        for prompt in range(3):
            text, place = torch.randint(2000, (2, 100)).cuda(), 0
            for turn in range(8):
                x = words(text)
                for block, cache in zip(blocks, caches):
                    x = block(x, (*cache, place))
                if prompt == 1 and turn in (0, 5):
                    labels.mark(model, None, [text], caches)
                place += text.shape[1]
                text = head(x[:, -1:]).argmax(-1)


def widen(*widths):
    return nn.Sequential(*(layer for a, b in zip(widths, widths[1:])
                           for layer in (nn.Linear(a, b), nn.LeakyReLU(0.2))))


@program()
def rivals(labels):
    """Two models with an optimizer each, in turns; the first one's sample is detached."""
    maker, judge = widen(100, 400, 800, 1600).cuda(), widen(1600, 600, 300, 1).cuda()
    optimizers = [torch.optim.Adam(one.parameters(), betas=(0.5, 0.9)) for one in (maker, judge)]
    both = nn.ModuleList([maker, judge])

    class Both:
        state = {}

    for step in range(6):
        real, noise = draw(256, 1600), draw(256, 100)
        fake = maker(noise)
        loss = F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()
        Both.state = {**optimizers[0].state, **optimizers[1].state}
        if step == 3:
            labels.mark(both, Both, [real, noise])
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        loss = F.softplus(-judge(fake)).mean()
        optimizers[0].zero_grad()
        loss.backward()
        if step == 3:
            labels.mark(both, Both, [real, noise])
        optimizers[0].step()


@program()
def taught(labels):
    """A large model without gradients teaches a small one; marks in either's forward pass."""
    teacher = nn.Sequential(*(Encoder(384) for _ in range(4))).cuda().eval().requires_grad_(False)
    student = nn.Sequential(*(Encoder(384) for _ in range(2))).cuda()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    both, state = nn.ModuleList([teacher, student]), {"step": 0}

    def mark(*_):
        if state["step"] == 2:
            labels.mark(both, optimizer, [state["x"]])

    teacher[2].mlp.register_forward_hook(mark)
    student[1].mlp.register_forward_hook(mark)
    for step in range(5):
        state.update(step=step, x=draw(8, 150, 384))
        with torch.no_grad():
            wanted = teacher(state["x"])
        loss = F.mse_loss(student(state["x"]), wanted)
        del wanted
        loss.backward()
        mark()
        optimizer.step()
        optimizer.zero_grad()


class Scaled(torch.autograd.Function):
    """An operation of the program's own, which saves its input and a mask."""

    @staticmethod
    def forward(ctx, x):
        mask = x > 0
        ctx.save_for_backward(x, mask)
        return torch.where(mask, x, x * 0.1)

    @staticmethod
    def backward(ctx, grad):
        x, mask = ctx.saved_tensors
        return torch.where(mask, grad, grad * 0.1) + x * 0


@program()
def averaged(labels):
    """A second model holds the mean of the weights; each third step evaluates it."""
    layers = nn.ModuleList(nn.Linear(500, 500) for _ in range(6)).cuda()
    mean = copy.deepcopy(layers).requires_grad_(False)
    optimizer, both = torch.optim.RMSprop(layers.parameters()), nn.ModuleList([layers, mean])

    def run(model, x):
        for layer in model:
            x = Scaled.apply(layer(x))
        return x.square().mean()

    for step in range(7):
        x = draw(400, 500)
        loss = run(layers, x)
        if step == 4:
            labels.mark(both, optimizer, [x])
        loss.backward()
        if step == 4:
            labels.mark(both, optimizer, [x])
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for slow, fast in zip(mean.parameters(), layers.parameters()):
                slow.lerp_(fast, 0.1)
            if step % 3 == 2:
                run(mean, draw(400, 500)).item()


class Down(nn.Module):
    def __init__(self, channels, inner=None):
        super().__init__()
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.inner, self.join = inner, nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(8, channels)

    def forward(self, x):
        y = F.silu(self.down(x))
        y = self.up(self.inner(y) if self.inner else y)
        return F.silu(self.norm(self.join(torch.cat((x, y), 1))))


@program(late=True)
def late_images(labels):
    """A U-Net with momentum, recorded from the fourth step on, in mixed precision."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), Down(32, Down(64, Down(128))),
                          nn.Conv2d(32, 3, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(8):
        if step == 4:
            labels.record()
        x = draw(4, 3, 96, 96)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.mse_loss(model(x), x)
        if step == 6:
            labels.mark(model, optimizer, [x])
        optimizer.zero_grad()
        loss.backward()
        if step == 6:
            labels.mark(model, optimizer, [x])
        optimizer.step()


battery.main()
