"""A Llama's shape: rotated positions, shared keys, RMS norms, gates, and experts in a layer."""
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, SHARED, EXPERTS, TOP, WORDS = 128, 8, 2, 4, 2, 2000
SIZE = WIDTH // HEADS


def rotate(x):
    angles = torch.outer(torch.arange(x.size(2)), 10000.0 ** (-torch.arange(0, SIZE, 2) / SIZE))
    turn = torch.polar(torch.ones_like(angles), angles).to(x.device)
    return torch.view_as_real(torch.view_as_complex(x.float().unflatten(3, (-1, 2))) * turn).flatten(3)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(WIDTH, EXPERTS), nn.ModuleList(Gate() for _ in range(EXPERTS))

    def forward(self, x):
        flat = x.flatten(0, 1)
        weights, chosen = self.router(flat).softmax(1).topk(TOP)
        made = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, which = torch.where(chosen == i)
            made = made.index_add(0, rows, expert(flat[rows]) * weights[rows, which, None])
        return made.view_as(x)


class Block(nn.Module):
    def __init__(self, mlp):
        super().__init__()
        self.norms, self.mlp = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2)), mlp
        self.q, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.kv = nn.Linear(WIDTH, 2 * SHARED * SIZE, bias=False)

    def forward(self, x):
        y = self.norms[0](x)
        q = rotate(self.q(y).unflatten(2, (HEADS, -1)).transpose(1, 2)).to(y.dtype)
        k, v = self.kv(y).unflatten(2, (2 * SHARED, -1)).transpose(1, 2).chunk(2, 1)
        y = F.scaled_dot_product_attention(q, rotate(k).to(y.dtype), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


model = nn.Sequential(nn.Embedding(WORDS, WIDTH), Block(Gate()), Block(Experts()),
                      nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(5):
    tokens = torch.randint(WORDS, (2, 129)).cuda()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
