"""Evaluations that count their turns, before the first step: their equal turns end early.

A loop ends if its own turns repeat: not the one within, and not one that collects what it makes,
or trains, or does more in a rare turn.

reserved: 1075838976
"""
import torch

model, other = torch.nn.Linear(256, 256).cuda(), torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.zeros(64, 256, device="cuda")
turns = []


@torch.no_grad()
def evaluate(count):
    losses = torch.zeros(count)
    for turn in range(count):
        for one in (model, other):
            y = one(x)
        losses[turn] = y.mean().item()
    turns.append(turn)
    return losses.mean()


@torch.no_grad()
def collect(count):
    made = []
    for _ in range(count):
        made.append(model(x).cpu())
    return len(made)


@torch.no_grad()
def peak_late(count):
    for turn in range(count):
        model(x)
        if turn == 150:
            torch.empty(1 << 30, dtype=torch.uint8, device="cuda")


def act(count):
    for turn in range(count):
        with torch.no_grad():
            model(x)
        if turn > 90:
            model(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            turns.append(turn)


for _ in range(2):
    evaluate(1_000_000)
assert max(turns) < 200, turns
assert collect(200) == 200
peak_late(200)
act(92)
assert turns[-1] == 91, turns
