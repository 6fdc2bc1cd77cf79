#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a dry run says of the host's memory: host.py TOOL [NAME...]

Each program keeps some beside a small model. Its figure is known within SLACK, over what PyTorch
and Python take in a program that keeps nothing; pinned memory is known exactly. --host limits it.

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py); without it all are skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

from needs import find_torch

MIB = 1 << 20
SLACK = 100 * MIB

HEAD = """
import os, time, torch
from torch.utils.data import DataLoader, Dataset

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()

"""

# name: (MiB of the host over "nothing", pinned MiB, workers, --host or None, exit status, program)
PROGRAMS = {
    "nothing": (0, 0, 0, "1500MiB", 0, "step()"),
    "kept": (2000, 0, 0, "46GiB", 0, """
        rows = b"x" * (2000 << 20)
        step()
        """),
    "too_much": (2000, 0, 0, "1500MiB", 1, """
        rows = b"x" * (2000 << 20)
        step()
        """),
    "freed": (1000, 0, 0, None, 0, """
        rows = b"x" * (1000 << 20)
        del rows
        step()
        """),
    "device": (512, 0, 0, None, 0, """
        large = torch.zeros(20 << 30, dtype=torch.uint8, device="cuda")
        large[::2].fill_(1)  # a kernel's work, which nobody does
        for _ in range(3):
            marks = torch.ones(1 << 26, dtype=torch.long).cuda()
            step()
        """),
    "pinned": (640, 640, 0, "800MiB", 1, """
        never = torch.empty(512 << 20, dtype=torch.uint8, pin_memory=True)
        written = torch.ones(128 << 20, dtype=torch.uint8, pin_memory=True)
        step()
        """),
    "mapped": (0, 0, 0, None, 0, """
        with open("weights", "wb") as out:
            out.truncate(400 << 20)
        weights = torch.from_file("weights", size=400 << 20, dtype=torch.uint8)
        print(weights.max())
        step()
        """),
    "workers": (4 * 150, 0, 4, "700MiB", 1, """
        class Rows(Dataset):
            kept = None
            def __len__(self):
                return 64
            def __getitem__(self, i):
                self.kept = self.kept or b"x" * (150 << 20)
                time.sleep(0.2)
                return torch.zeros(4)
        for rows in DataLoader(Rows(), batch_size=4, num_workers=4):
            step()
        """),
    # as vLLM does with a model of GPTQ: numbers made of weights that were not read
    "unpacked": (0, 0, 0, None, 0, """
        kept = []
        for layer in range(8):
            packed = torch.empty(512, 4096, dtype=torch.int32, device="cuda")
            kept.append(torch.zeros(512, 32768, dtype=torch.int32, device="cuda"))
            for i in range(8):
                kept[-1][..., i::8] = (packed >> 4 * i) & 15
            kept[-1] = kept[-1] + 1
        step()
        """),
    # three tensors in shared memory, and for a moment the worker's own copy of one
    "shared": (320, 0, 1, None, 0, """
        class Rows(Dataset):
            def __len__(self):
                return 3
            def __getitem__(self, i):
                return torch.ones(100 << 20, dtype=torch.uint8)
        rows = list(DataLoader(Rows(), batch_size=None, num_workers=1))
        time.sleep(3)  # looks are rare where they cost much
        step()
        """),
}


def run(tool, torch, name, folder):
    """Run a program. Return its exit status and what is told of the host."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[name][-1]))
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1")
    limit = ["--host", PROGRAMS[name][3]] if PROGRAMS[name][3] else []
    words = [tool, "dry-run", *limit, "--json", "--", sys.executable, path]
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=folder, check=False,
                          stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, json.loads(done.stdout)


def judge(name, status, result, least):
    """Return what is wrong, or None."""
    more, pinned, workers, limit, expected, _ = PROGRAMS[name]
    host = result["host"]
    over = host["peak_bytes"] - least
    if not -SLACK / 4 <= over - more * MIB <= SLACK + more * MIB // 20:
        return f"{over / MIB:.0f} MiB over nothing, expected {more}: {host}"
    if host["pinned_peak_bytes"] != pinned * MIB or host["workers"] != workers:
        return f"expected {pinned} MiB pinned and {workers} workers: {host}"
    if workers and not 0 < host["worker_peak_bytes"] <= host["workers_peak_bytes"]:
        return f"figures of workers: {host}"
    if name == "shared" and not 300 * MIB <= host["shared_peak_bytes"] < 301 * MIB:
        return f"shared memory is not seen: {host}"
    if status != expected or result["fits"] is not (expected == 0) or \
            (host["limit_bytes"] is None) is not (limit is None):
        return f"exit status {status}, fits {result['fits']}: {host}"
    return None


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    torch = find_torch()
    failed, least = 0, 0
    for name in ["nothing", *(sys.argv[2:] or list(PROGRAMS)[1:])]:
        with tempfile.TemporaryDirectory() as folder:
            status, result = run(tool, torch, name, pathlib.Path(folder))
        least = least or result["host"]["peak_bytes"]
        wrong = judge(name, status, result, least)
        print(f"{name}: {wrong or 'ok'}\n    {result['host']}", flush=True)
        failed += wrong is not None
    sys.exit(failed > 0)


main()
