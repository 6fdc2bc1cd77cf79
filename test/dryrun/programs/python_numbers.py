"""Python's own numbers were read from the device: a line is named if a branch follows from them.

guesses: 42 compare, 47 compare, 52 compare, 57 compare, 63 compare, 64 compare, 66 compare, 70 item, 72 compare, 79 compare, 86 compare, 94 compare, 1 compare, 115 compare, 117 compare, 119 compare
"""
import copy
import io
import json
import math
import pickle

import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
loss = model(torch.randn(8, 64, device="cuda")).square().mean()
number, total, wait, best, kept = loss.item(), 0.0, 0, math.inf, None

# These decide nothing: prints, sums, a check that passes, torch's own, infinity, known numbers.
print(f"{number:.3f}", number, json.dumps({"loss": number}), sum([number, number]) / 2)
total += number
if number < 1:
    print("small")
if number > 10:
    raise ValueError("it diverged")
assert number >= 0 and isinstance(number, float) and hash(number) == hash(0.0)
if number < best or number != number:
    kept = copy.deepcopy(model)
lowest = min(number, 3.0)
scheduler.step(number)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
known = torch.tensor([2.0, 3.0], device="cuda")
if known.tolist()[1] > 2:
    print([1] * 3, model(torch.zeros(1, 64, device="cuda")).shape)
assert type(pickle.loads(pickle.dumps(number))) is float
file = io.BytesIO()
torch.save({"loss": number, "more": copy.deepcopy([number])}, file)
file.seek(0)
assert torch.load(file, weights_only=True)["loss"] == 0.0

# These decide: a copy, a loop, a flag, a counter, a selection, a size.
if 1 / (1 + number) < 0.5:
    kept = copy.deepcopy(model)


def is_better(value):
    return value < 0.1


if is_better(loss.cpu().item()):
    kept = copy.deepcopy(model)
while float(loss) > 0.5:
    loss = model(torch.randn(8, 64, device="cuda")).square().mean()


def evaluate():
    return float(model(torch.randn(8, 64, device="cuda")).sum())


score = evaluate()
if score > 3:
    kept = copy.deepcopy(model)
best = max(number, -1.0)
if best > 3.5:
    kept = copy.deepcopy(model)
if number > 0.5:
    wait += 1
if wait > 3:
    kept = copy.deepcopy(model)
room = torch.empty(int(10 + number), device="cuda")
rows = model(torch.randn(8, 64, device="cuda")).mean(1).tolist()
kept = [torch.empty(8, device="cuda") for row in rows if row > 0.5]


class Stopper:
    best = 9.0

    def asks(self, value):
        if value < self.best:
            self.best, self.model = value, copy.deepcopy(model)


Stopper().asks(number)
right = 0
right += (model(torch.randn(8, 64, device="cuda")).argmax(1) == 3).sum().item()
if right / 8 > 0.9:
    kept = copy.deepcopy(model)


class Patience:
    wait = 0

    def asks(self, value):
        if value > 0.25:
            self.wait += 1

    def is_over(self):
        if self.wait > 9:
            torch.cuda.empty_cache()


Patience().asks(number)
exec("if number > 0.125: kept = copy.deepcopy(model)")
if hasattr(torch, "uint64"):  # a seed has 64 bits and no sign
    wide = torch.tensor([-1], device="cuda").view(torch.uint64)
    assert wide.item() == int(wide) == 2 ** 64 - 1 and wide.cpu().item() == 2 ** 64 - 1
    assert bool(wide) and float(wide) == 2.0 ** 64 and wide.tolist() == [2 ** 64 - 1]

# The order of other things decides, if it is used; that of the numbers alone does not.
losses = model(torch.randn(8, 64, device="cuda"))[0, :3].tolist()
print(sorted(losses), max(zip(losses, "abc")))
for text, value in sorted(zip("abc", losses), key=lambda pair: pair[1]):
    print(text, value)
least = sorted(losses)[0]
first = min(range(3), key=lambda one: losses[one])
kept = torch.empty(first + 1, device="cuda")
ranks = sorted(zip(losses, range(3)))
kept = torch.empty(ranks[0][1] + 1, device="cuda")
for one in sorted(range(3), key=losses.__getitem__):
    kept = torch.empty(one + 1, device="cuda")
