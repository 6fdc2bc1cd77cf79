#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The changes of `drystone fit` hold: fits.py TOOL

A language model misses a card by half. At least two changes are found in twelve runs; each of them,
applied, then fits by `drystone dry-run` on that card, which does not know of the search. The program
as it is does not. PyTorch with CUDA is $DRY_TEST_TORCH; without it this is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from needs import find_torch

tool = pathlib.Path(sys.argv[1]).resolve()
HOOK = pathlib.Path(__file__).resolve().parents[2] / "python/drystone/torch/hook"
PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.back(nn.functional.gelu(self.wide(self.norm(x))))

class Model(nn.Module):
    def __init__(self, width=256, words=4000):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.blocks = nn.ModuleList(Block(width) for _ in range(12))

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
texts = TensorDataset(torch.randint(0, 4000, (1024, 129)))
for (text,) in DataLoader(texts, batch_size=32):
    text = text.cuda()
    loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

RECURRENT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, words=10000, width=512):
        super().__init__()
        self.drop, self.embed = nn.Dropout(0.2), nn.Embedding(words, width)
        self.rnn, self.head = nn.LSTM(width, width, 3, dropout=0.2), nn.Linear(width, words)

    def forward(self, x, state):
        y, state = self.rnn(self.drop(self.embed(x)), state)
        return self.head(self.drop(y)).flatten(0, 1), state

model = Model().cuda()
text = torch.zeros(35 * 40 + 1, 64, dtype=torch.long, device="cuda")
state = tuple(torch.zeros(3, 64, 512, device="cuda") for _ in range(2))
for i in range(0, len(text) - 1, 35):
    model.zero_grad()
    state = tuple(one.detach() for one in state)
    out, state = model(text[i:i + 35], state)
    loss = nn.functional.cross_entropy(out, text[i + 1:i + 36].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for weight in model.parameters():
        weight.data.add_(weight.grad, alpha=-20)
"""

# Ten segments of 20 MiB, of which each is free, or keeps a piece of 4, when 100 MiB are asked for.
PIECES = """
import torch

MIB, pieces = 1 << 18, []
for _ in range(10):
    pieces += [torch.empty(4 * MIB, device="cuda"), torch.empty(16 * MIB, device="cuda")]
pieces = pieces[::2] if {kept} else []
torch.empty(100 * MIB, device="cuda")
"""


def run(folder, torch, *words, changes=None):
    env = {**os.environ, "PYTHONPATH": str(torch), "TORCH_USE_RTLD_GLOBAL": "1"}
    if changes:
        env["PYTHONPATH"] = f"{HOOK}{os.pathsep}{torch}"
        env["DRYSTONE_FIT"] = json.dumps({"changes": changes, "looks": False})
    return subprocess.run([tool, *words, "--", "python3", "program.py"], cwd=folder, env=env,
                          capture_output=True, text=True, timeout=900)


def main():
    torch = find_torch()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "program.py").write_text(PROGRAM)
        needs = json.loads(run(folder, torch, "dry-run", "-q", "--json", "--card", "l4").stdout)
        memory = needs["context_bytes_assumed"] + needs["reserved_peak_bytes"] * 2 // 3
        card = ["--card", "l4", "--memory", str(memory)]
        done = run(folder, torch, "fit", "--json", "--runs", "12", *card)
        found = json.loads(done.stdout)
        if done.returncode != 0 or len(found["fits_with"]) < 2 or found["runs"] > 12:
            wrong.append(f"status {done.returncode}, {len(found['fits_with'])} changes, "
                         f"{found['runs']} runs: {done.stdout} {done.stderr}")
        plain = run(folder, torch, "dry-run", "-q", *card)
        if plain.returncode != 1:
            wrong.append(f"it fits as it is: {plain.stdout}")
        for row in found["fits_with"]:
            again = run(folder, torch, "dry-run", "-q", *card, changes=row["changes"])
            print(f"{row['change']}: {'fits' if again.returncode == 0 else 'does not fit'}")
            if again.returncode != 0:
                wrong.append(f"{row['change']}: {again.stdout} {again.stderr}")
        pathlib.Path(folder, "program.py").write_text(RECURRENT)
        done = run(folder, torch, "fit", "--json", "--card", "h100-80", "--memory", "1267MiB")
        first = json.loads(done.stdout)["fits_with"][:1]
        if [sorted(row["changes"]) for row in first] != [["loss_in_chunks", "offload_saved"]]:
            wrong.append(f"the search ended early: {done.stdout} {done.stderr}")
        for kept in False, True:  # a replay tells that no more runs on the card are needed
            pathlib.Path(folder, "program.py").write_text(PIECES.format(kept=kept))
            memory = needs["context_bytes_assumed"] + (250 << 20)
            done = run(folder, torch, "fit", "--json", "--card", "l4", "--memory", str(memory))
            told = json.loads(done.stdout)
            if told["runs"] != 2 or told["fits"] == kept or done.returncode != kept:
                wrong.append(f"pieces, kept: {kept}: {done.stdout} {done.stderr}")
    print("\n".join(wrong) or f"{len(found['fits_with'])} changes hold, {found['runs']} runs")
    sys.exit(1 if wrong else 0)


main()
