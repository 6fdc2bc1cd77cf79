"""Advice on what to click: tables of embeddings, few rows a step, products of pairs, Adagrad."""
import torch
from torch import nn

ROWS, WIDTH, TABLES, BATCH = 20_000, 16, 6, 256
bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, WIDTH)).cuda()
tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True)
                       for _ in range(TABLES)).cuda()
PAIRS = TABLES * (TABLES + 1) // 2
top = nn.Sequential(nn.Linear(WIDTH + PAIRS, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
dense = torch.optim.Adam([*bottom.parameters(), *top.parameters()])
rare = torch.optim.SGD(tables.parameters(), lr=0.1)
row, column = torch.tril_indices(TABLES + 1, TABLES + 1, -1).cuda()
for _ in range(4):
    begins = torch.arange(0, BATCH * 2, 2).cuda()
    x = bottom(torch.zeros(BATCH, 13, device="cuda"))
    rows = [table(torch.randint(ROWS, (BATCH * 2,)).cuda(), begins) for table in tables]
    all_of = torch.stack([x, *rows], 1)
    pairs = (all_of @ all_of.transpose(1, 2))[:, row, column]
    assert pairs.shape == (BATCH, PAIRS)
    y = top(torch.cat((x, pairs), 1)).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(y, torch.zeros(BATCH, device="cuda"))
    dense.zero_grad()
    rare.zero_grad()
    loss.backward()
    assert tables[0].weight.grad.is_sparse
    dense.step()
    rare.step()
