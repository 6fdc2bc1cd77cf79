# SPDX-License-Identifier: Apache-2.0
"""Small chains of stages, and random plans for them."""
import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """A block with a residual stream; what it saves is easy to count."""

    def __init__(self, width, inner, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


class Attention(nn.Module):
    """An odd number of matrix products."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        split = (*x.shape[:2], self.heads, -1)
        q, k, v = (layer(x).view(split).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        return x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Conv(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(after)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def mean_of_squares(y):
    return (y * y).mean()


def transformer():
    """(stages, example): unequal blocks, the middle ones larger."""
    stages = [nn.Embedding(50, 32), Mlp(32, 128), Attention(32, 4), Mlp(32, 256),
              Attention(32, 2), Mlp(32, 64), nn.Linear(32, 40)]
    return stages, torch.randint(0, 50, (4, 24))


def perceptrons():
    """Unequal blocks, each with a product, an activation and a norm."""
    widths = (128, 256, 128, 64, 256, 128)
    return [Mlp(32, width) for width in widths], torch.randn(8, 24, 32)


def convolutional():
    stages = [Conv(3, 16), Conv(16, 32, 2), Conv(32, 32), Conv(32, 64, 2), Conv(64, 64),
              nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))]
    return stages, torch.randn(8, 3, 24, 24)


def random_items(rng, first, last, options=(), depth=0):
    """Items that cover these stages, nested at random; by options, too, if there are any."""
    items = []
    while first <= last:
        end = rng.randint(first, last)
        kind = rng.random()
        if kind < 0.4:
            items.append({"save": [first, end]})
        elif options and kind < 0.7:
            items.append({"opt": [first, end], "id": rng.choice(options)})
        else:
            item = {"ckpt": [first, end]}
            if end > first and depth < 3 and rng.random() < 0.6:
                item["inner"] = random_items(rng, first, end, options, depth + 1)
            items.append(item)
        first = end + 1
    return items


def random_plan(rng, count, options=()):
    """The last of `count` stages is kept, as a loss is."""
    last = rng.randrange(count)
    items = random_items(rng, 0, last - 1, options) if last else []
    return items + [{"save": [last, count - 1]}]
