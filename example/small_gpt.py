# SPDX-License-Identifier: Apache-2.0
"""The model of the exercises: a GPT, cut into stages."""
import torch
from torch import nn
from torch.nn import functional as F


class Front(nn.Module):
    def __init__(self, vocab, width, length):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(length, width)

    def forward(self, tokens):
        return self.token(tokens) + self.place.weight[:tokens.shape[1]]


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((F.dropout(scores, self.dropout) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + F.dropout(self.attend(self.first(x)), self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.second(x)))), self.dropout)


def make(layers=8, width=128, heads=4, length=128, vocab=1000, dropout=0.1):
    """(stages, loss, tokens): tokens(batch) makes an input, loss takes the last output."""
    stages = [Front(vocab, width, length)]
    stages += [Block(width, heads, dropout) for _ in range(layers)]
    stages += [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocab, bias=False))]

    def loss(logits):
        targets = torch.arange(logits.shape[1], device=logits.device) % vocab
        return F.cross_entropy(logits.flatten(0, 1), targets.repeat(logits.shape[0]))

    return stages, loss, lambda batch: torch.randint(0, vocab, (batch, length))
