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
    print("\n".join(wrong) or f"{len(found['fits_with'])} changes hold, {found['runs']} runs")
    sys.exit(1 if wrong else 0)


main()
