# SPDX-License-Identifier: Apache-2.0
"""Models with a forward of their own, in the shapes of the field: (model, example, loss)."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer's, called with a mask, which returns a tuple if it is told to."""

    def __init__(self, width, heads, dropout=0.1, is_tuple=False):
        super().__init__()
        self.heads, self.is_tuple = heads, is_tuple
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(self.first(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        mixed = (self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.out(mixed))
        x = x + self.dropout(self.down(F.gelu(self.up(self.second(x)))))
        return (x, None) if self.is_tuple else x


class Gpt(nn.Module):
    """As GPT-2 is mostly written: a list of blocks, a mask made once, tied weights."""

    def __init__(self, layers=4, width=32, vocab=60, length=24, is_tuple=False):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocab, width), "wpe": nn.Embedding(length, width),
            "drop": nn.Dropout(0.1),
            "h": nn.ModuleList(Block(width, 4, is_tuple=is_tuple) for _ in range(layers)),
            "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        self.keeps_hidden = False

    def forward(self, tokens, targets=None):
        t = tokens.shape[1]
        mask = torch.full((t, t), float("-inf"), device=tokens.device).triu(1)
        parts, hidden = self.transformer, []
        x = parts.drop(parts.wte(tokens) + parts.wpe.weight[:t])
        for block in parts.h:
            x = block(x, mask=mask)
            x = x[0] if isinstance(x, tuple) else x
            if self.keeps_hidden:
                hidden.append(x)
        logits = self.lm_head(parts.ln_f(x))
        if targets is None:
            return (logits, hidden) if self.keeps_hidden else logits
        return {"logits": logits, "loss": F.cross_entropy(logits.flatten(0, 1),
                                                          targets.flatten())}


class Bottleneck(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.side = nn.Conv2d(before, after, 1, stride, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norms[0](self.one(x)))
        return self.relu(self.norms[1](self.two(y)) + self.side(x))


class ResNet(nn.Module):
    """Sequentials of blocks beside each other, around them an in-place ReLU and a pool."""

    def __init__(self, width=8):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        sizes = [(width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2)]
        for number, (before, after, stride) in enumerate(sizes, 1):
            self.add_module(f"layer{number}", nn.Sequential(
                Bottleneck(before, after, stride), Bottleneck(after, after, 1)))
        self.head = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = self.relu(self.norm(self.conv(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class ViT(nn.Module):
    """Patches, a class token, blocks in a Sequential."""

    def __init__(self, layers=3, width=32):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, 37, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class EncoderDecoder(nn.Module):
    """Two lists, something between them, and layers that take what the encoder made."""

    class Cross(Block):
        def forward(self, x, memory):
            return super().forward(x + memory.mean(1, keepdim=True))

    def __init__(self, width=32):
        super().__init__()
        self.encoder = nn.ModuleList(Block(width, 4) for _ in range(3))
        self.decoder = nn.ModuleList(EncoderDecoder.Cross(width, 4) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, source, target):
        for layer in self.encoder:
            source = layer(source)
        memory = self.norm(source)
        for layer in self.decoder:
            target = layer(target, memory=memory)
        return target


def of_classes(logits):
    return F.cross_entropy(logits, torch.arange(logits.shape[0]) % logits.shape[1])


def of_tokens(logits):
    return F.cross_entropy(logits.flatten(0, 1), torch.zeros(logits[..., 0].numel()).long())


def squares(y):
    return (y * y).mean()


def gpt(**words):
    torch.manual_seed(1)
    return Gpt(**words), torch.randint(0, 60, (4, 24)), of_tokens


def gpt_with_loss():
    torch.manual_seed(1)
    tokens = torch.randint(0, 60, (4, 24))
    return Gpt(), {"tokens": tokens, "targets": tokens}, None


def resnet():
    torch.manual_seed(1)
    return ResNet(), torch.randn(4, 3, 24, 24), of_classes


def vit():
    torch.manual_seed(1)
    return ViT(), torch.randn(4, 3, 24, 24), of_classes


def encoder_decoder():
    torch.manual_seed(1)
    return EncoderDecoder(), (torch.randn(4, 24, 32), torch.randn(4, 24, 32)), squares
