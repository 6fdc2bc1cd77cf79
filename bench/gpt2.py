# SPDX-License-Identifier: Apache-2.0
"""GPT-2 of 124 million weights: bf16 autocast, fused attention, AdamW. gpt2.py build | BATCH

"build" ends when the model is on the device: what a dry run adds to that is its own. Each step
says how many milliseconds it took.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, LENGTH, WORDS = 768, 12, 12, 1024, 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(LENGTH, device=tokens.device))
        x = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(x.view(-1, WORDS), tokens.view(-1))


model = GPT2().cuda()
if sys.argv[1] == "build":
    sys.exit()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(100):
    begin = time.monotonic()
    tokens = torch.randint(WORDS, (int(sys.argv[1]), LENGTH)).pin_memory().cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    loss.item()
    print("step", (time.monotonic() - begin) * 1e3, file=sys.stderr, flush=True)
