"""Words made one by one: a cache of keys and values that grows by one place a word."""
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, DEPTH, WORDS, BATCH = 128, 4, 3, 1000, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                 nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for part in self.qkv(self.norm(x)).chunk(3, 2))
        if cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not cache)
        x = x + y.transpose(1, 2).flatten(2)
        return x + self.mlp(x), (k, v)


words, head = nn.Embedding(WORDS, WIDTH).cuda().half(), nn.Linear(WIDTH, WORDS).cuda().half()
blocks = nn.ModuleList(Block() for _ in range(DEPTH)).cuda().half()
caches = [None] * DEPTH
tokens = torch.randint(WORDS, (BATCH, 10)).cuda()
made = tokens
with torch.inference_mode():
    for _ in range(20):
        x = words(tokens)
        for i, block in enumerate(blocks):
            x, caches[i] = block(x, caches[i])
        chances = (head(x[:, -1]) / 0.8).softmax(1)
        tokens = torch.multinomial(chances.float() + 1e-3, 1)
        made = torch.cat((made, tokens), 1)
        if (tokens == WORDS - 1).all():
            break
assert made.shape == (BATCH, 30)
assert caches[0][0].shape == (BATCH, HEADS, 29, WIDTH // HEADS)
