# SPDX-License-Identifier: Apache-2.0
"""The first programs whose tensors are known; categories.py asks what they are taken for."""
import labels as battery
import torch
from labels import program
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def draw(*shape):
    return torch.randn(*shape, device="cuda")


def draw_words(*shape):
    return torch.randint(1000, shape).cuda()


class Attention(nn.Module):
    """A block whose softmax is written out, so that its output is saved."""

    def __init__(self, width, heads=4, dropout=0.1):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.wide = nn.Linear(width, width), nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(self.norm(x)).chunk(3, 2))
        if cache is not None:
            k, v = cache.extend(k, v)
        shares = (q @ k.transpose(2, 3) / 8).softmax(-1)
        y = F.dropout(shares, self.dropout, self.training) @ v
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(x)))


class Language(nn.Module):
    def __init__(self, width=256, depth=4, block=Attention):
        super().__init__()
        self.words, self.head = nn.Embedding(1000, width), nn.Linear(width, 1000)
        self.blocks = nn.ModuleList(block(width) for _ in range(depth))

    def forward(self, words):
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def find_loss(out, words):
    return F.cross_entropy(out.flatten(0, 1), words.flatten())


@program()
def perceptron(labels):
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(700, 700), nn.ReLU())),
                          nn.Linear(700, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(5):
        x, y = draw(512, 700), torch.randint(10, (512,)).cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if step == 3:
            labels.mark(model, optimizer, [x, y])
        loss.backward()
        if step == 3:
            labels.mark(model, optimizer, [x, y])
        optimizer.step()


@program()
def zeroed_gradients(labels):
    model = nn.Sequential(nn.Linear(600, 900), nn.Tanh(), nn.Linear(900, 900), nn.Tanh(),
                          nn.Linear(900, 50)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(6):
        x = draw(300, 600)
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        if step == 3:
            labels.mark(model, optimizer, [x])
        loss.backward()
        optimizer.step()
        if step == 3:
            labels.mark(model, optimizer, [x])


@program()
def attention(labels):
    model = Language().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(5):
        words = draw_words(8, 128)
        loss = find_loss(model(words), words)
        if step == 3:
            labels.mark(model, optimizer, [words])
        loss.backward()
        if step == 3:
            labels.mark(model, optimizer, [words])
        optimizer.step()
        optimizer.zero_grad()


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        return F.relu(x + self.norm2(self.second(y)))


@program()
def convolutions(labels):
    model = nn.Sequential(nn.Conv2d(3, 64, 7, stride=2), *(Residual(64) for _ in range(4)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 100)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    at = [0]
    model[2].register_full_backward_pre_hook(
        lambda *_: labels.mark(model, optimizer, batch) if at[0] == 3 else None)
    for step in range(5):
        at[0] = step
        batch = [draw(16, 3, 64, 64), torch.randint(100, (16,)).cuda()]
        loss = F.cross_entropy(model(batch[0]), batch[1])
        if step == 3:
            labels.mark(model, optimizer, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class Grown:
    """Keys and values of the words so far; each word makes both anew, one place longer."""

    def __init__(self):
        self.tensors = []

    def extend(self, k, v):
        if self.tensors:
            k, v = (torch.cat(pair, 2) for pair in zip(self.tensors, (k, v)))
        self.tensors = [k, v]
        return k, v


@program()
def generation(labels):
    model = Language(width=512).cuda().eval()
    for _ in range(2):
        caches = [Grown() for _ in model.blocks]
        words = draw_words(4, 200)
        with torch.no_grad():
            for place in range(12):
                x = model.words(words)
                for block, cache in zip(model.blocks, caches):
                    x = block(x, cache)
                if place in (0, 8):
                    labels.mark(model, None, [words],
                                [one for cache in caches for one in cache.tensors])
                words = model.head(x[:, -1:]).argmax(-1)


@program()
def accumulation(labels):
    model = Language(width=320, depth=3).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        for part in range(4):
            words = draw_words(4, 100)
            loss = find_loss(model(words), words) / 4
            if step == 2 and part == 2:
                labels.mark(model, optimizer, [words])
            loss.backward()
            if step == 2 and part == 3:
                labels.mark(model, optimizer, [words])
        optimizer.step()
        optimizer.zero_grad()


@program()
def recomputed(labels):
    model = Language(width=256, depth=6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(5):
        words, held = draw_words(8, 128), []
        x = model.words(words)
        for block in model.blocks:
            held.append(x)
            x = checkpoint(block, x, use_reentrant=False)
        loss = find_loss(model.head(x), words)
        if step == 3:
            labels.mark(model, optimizer, [words], saved=held)
        del held, x
        loss.backward()
        if step == 3:
            labels.mark(model, optimizer, [words])
        optimizer.step()
        optimizer.zero_grad()


@program()
def mixed_precision(labels):
    model = Language(width=256, depth=4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for step in range(5):
        words = draw_words(8, 128)
        with torch.autocast("cuda", torch.bfloat16):
            loss = find_loss(model(words), words)
            if step == 3:
                labels.mark(model, optimizer, [words])
        scaler.scale(loss).backward()
        if step == 3:
            labels.mark(model, optimizer, [words])
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class Adapted(nn.Module):
    def __init__(self, width, rank=8):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return torch.relu(self.base(x) + self.up(self.down(x)))


@program()
def frozen_base(labels):
    model = nn.Sequential(*(Adapted(800) for _ in range(5))).cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for step in range(5):
        x = draw(256, 800)
        loss = model(x).square().mean()
        if step == 3:
            labels.mark(model, optimizer, [x])
        loss.backward()
        if step == 3:
            labels.mark(model, optimizer, [x])
        optimizer.step()
        optimizer.zero_grad()


@program()
def evaluation(labels):
    """Training, then an evaluation whose forward passes autograd saves for nothing."""
    model = Language(width=256, depth=3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        words = draw_words(8, 128)
        loss = find_loss(model(words), words)
        loss.backward()
        if step == 2:
            labels.mark(model, optimizer, [words])
        optimizer.step()
        optimizer.zero_grad()
    total = 0.0
    for turn in range(5):
        words = draw_words(8, 128)
        loss = find_loss(model(words), words)
        if turn == 3:
            labels.mark(model, optimizer, [words])
        total += loss.item()


@program()
def recurrent(labels):
    words, cell = nn.Embedding(1000, 256), nn.LSTM(256, 384, num_layers=2, batch_first=True)
    model = nn.ModuleList([words, cell, nn.Linear(384, 1000)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(5):
        text = draw_words(16, 60)
        out, _ = cell(words(text))
        loss = find_loss(model[2](out), text)
        if step == 3:
            labels.mark(model, optimizer, [text])
        del out
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step == 3:
            labels.mark(model, optimizer, [text])
        optimizer.step()
        optimizer.zero_grad()


@program(late=True)
def window(labels):
    """The recording begins in the middle of the run."""
    model = Language(width=256, depth=4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(7):
        if step == 2:
            labels.record()
        words = draw_words(8, 128)
        loss = find_loss(model(words), words)
        if step == 5:
            labels.mark(model, optimizer, [words])
        loss.backward()
        if step == 5:
            labels.mark(model, optimizer, [words])
        optimizer.step()
        optimizer.zero_grad()


@program()
def out_of_memory(labels):
    """A batch that is too long: the forward pass of its step fails."""
    model = Language(width=256, depth=6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    torch.cuda.set_per_process_memory_fraction((1 << 30) / torch.cuda.mem_get_info()[1])
    try:
        for length in (128, 128, 128, 700):
            words = draw_words(8, length)
            x = model.words(words)
            for block in model.blocks:
                if length == 700:
                    labels.mark(model, optimizer, [words])
                x = block(x)
            find_loss(model.head(x), words).backward()
            optimizer.step()
            optimizer.zero_grad()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.set_per_process_memory_fraction(1.0)


battery.main()
