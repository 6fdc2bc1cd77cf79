#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs made to fool a dry run: fooling.py TOOL [NAME...]

Each does more on a GPU than a first look shows: later, elsewhere, or by numbers that no kernel
computed. None of them may be called "fits" without a word more. One whose memory does not depend on
numbers is too much for the card on every run ("oom"), and nothing keeps a dry run from that part;
of the others ("unknown") the first line has to say what was not run or not known.

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py); without it all are skipped.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

from needs import find_torch

CARD = "rtx4090-24"
# These are wrong, and we know why. Take one off when it is right again.
KNOWN_WRONG = {
    "two_processes": "each process has the card for itself, and the first line says so",
}
UNQUALIFIED = re.compile(rf"{CARD}: fits  \d")

# What the programs share: a step that takes little, and one allocation that is too much.
HEAD = """
import atexit, copy, ctypes, os, random, subprocess, sys, threading, time
import torch
from torch import nn

def make(width=256):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).cuda()
    return model, torch.optim.AdamW(model.parameters())

def step(model, optimizer, rows=8):
    loss = model(torch.randn(rows, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

def large(gib=30):
    return torch.empty(gib << 30, dtype=torch.uint8, device="cuda")

"""

PROGRAMS = {
    # --- later ---
    "late_batch": ("unknown", """
        model, optimizer = make()
        for number in range(1000):
            step(model, optimizer, 8 if number < 300 else 8 << 20)
        """),
    "curriculum": ("unknown", """
        model, optimizer = make()
        for epoch in range(100):
            for _ in range(20):
                step(model, optimizer, 64 << (epoch // 5))
        """),
    "fifth_epoch": ("unknown", """
        model, optimizer = make()
        for epoch in range(20):
            for _ in range(50):
                step(model, optimizer)
            if epoch % 5 == 4:
                large()
        """),
    "sorted_lengths": ("unknown", """
        model, optimizer = make()
        lengths = [8] * 500 + [8 << 20] * 20
        for rows in lengths:
            step(model, optimizer, rows)
        """),
    "for_an_hour": ("unknown", """
        model, optimizer = make()
        begin = time.time()
        while time.time() - begin < 3600:
            step(model, optimizer)
            if time.time() - begin > 1800:
                large()
        """),
    "random_lengths": ("unknown", """
        model, optimizer = make()
        for _ in range(20000):
            step(model, optimizer, 8 << (20 if random.random() < 0.0001 else random.randint(0, 9)))
        """),
    # --- by numbers ---
    "better_copy": ("unknown", """
        model, optimizer = make()
        best, kept = 0.5, None
        for _ in range(3):
            accuracy = 1 / (1 + step(model, optimizer).item())
            if accuracy < best:
                kept = large()
        """),
    "until_loss": ("unknown", """
        model, optimizer = make()
        kept, loss = [], torch.tensor(1e9)
        while loss > 0.01:
            loss = step(model, optimizer)
            kept.append(torch.empty(1 << 28, dtype=torch.uint8, device="cuda"))
        """),
    "kept_rows": ("unknown", """
        rows = torch.randn(400_000, 16, device="cuda")
        rows = rows[rows[:, 0] > 0]
        print((rows @ rows.T).shape)
        """),
    "boxes": ("unknown", """
        scores = torch.rand(300_000, device="cuda")
        kept = (scores > 0.05).nonzero().squeeze(1)
        overlaps = torch.empty(len(kept), len(kept), device="cuda")
        """),
    "until_eos": ("unknown", """
        model, cache = nn.Linear(256, 1000).cuda(), []
        with torch.no_grad():
            word = torch.ones(1, dtype=torch.long, device="cuda")
            while word.item() != 0 and len(cache) < 4096:
                word = model(torch.randn(1, 256, device="cuda")).argmax(1)
                cache.append(torch.empty(16 << 20, dtype=torch.uint8, device="cuda"))
        """),
    "routed": ("unknown", """
        model, optimizer = make()
        expert = torch.randn(1 << 20, 64, device="cuda").argmax(1)
        counts = torch.bincount(expert, minlength=64)
        buffers = [torch.empty(int(count), 256, 8, device="cuda") for count in counts[1:]]
        """),
    "asserts_learning": ("unknown", """
        model, optimizer = make()
        for _ in range(5):
            loss = step(model, optimizer)
        assert loss.item() > 0, "a loss of zero: the data is broken"
        large()
        """),
    # --- elsewhere ---
    "in_thread": ("oom", """
        model, optimizer = make()
        worker = threading.Thread(target=large)
        worker.start()
        worker.join()
        for _ in range(3):
            step(model, optimizer)
        """),
    "child_process": ("oom", """
        code = "import torch; torch.empty(30 << 30, dtype=torch.uint8, device='cuda')"
        model, optimizer = make()
        step(model, optimizer)
        subprocess.run([sys.executable, "-c", code], check=False)
        """),
    "two_processes": ("oom", """
        code = ("import sys, torch; x = torch.empty(14 << 30, dtype=torch.uint8, device='cuda');"
                "print(1, flush=True); sys.stdin.read()")
        both = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE) for _ in range(2)]
        for one in both:
            one.stdout.readline()
        for one in both:
            one.communicate()
        """),
    "at_exit": ("oom", """
        model, optimizer = make()
        atexit.register(large)
        for _ in range(3):
            step(model, optimizer)
        """),
    "in_finally": ("oom", """
        model, optimizer = make()
        try:
            for _ in range(100000):
                step(model, optimizer)
        finally:
            large()
        """),
    "caught": ("oom", """
        model, optimizer = make()
        try:
            large()
        except Exception:
            pass
        for _ in range(3):
            step(model, optimizer)
        """),
    "outside": ("oom", """
        model, optimizer = make()
        step(model, optimizer)
        driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
        size = ctypes.c_size_t(20 << 30)
        if driver.cuMemAlloc_v2(ctypes.byref(address), size) != 0:
            sys.exit("the driver has no 20 GiB")
        large(10)
        """),
}


def judge(tool, torch, name, folder):
    """Run a program. Return None, or what is wrong, and the first line."""
    truth, source = PROGRAMS[name]
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(source))
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1")
    words = [tool, "dry-run", "--card", CARD, "--patience", "20", "-q", "--", sys.executable, path]
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=folder, check=False,
                          stdin=subprocess.DEVNULL, timeout=300)
    first = (done.stdout.splitlines() or done.stderr.splitlines() or ["(nothing)"])[0]
    if UNQUALIFIED.match(first):
        return "called fits without a word more", first
    if truth == "oom" and done.returncode != 1:
        return f"exit status {done.returncode}, expected 1: it does not fit", first
    return None, first


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    torch = find_torch()
    failed = 0
    names = sys.argv[2:] or list(PROGRAMS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            wrong, first = judge(tool, torch, name, pathlib.Path(folder))
        is_known = name in KNOWN_WRONG
        failed += is_known != (wrong is not None)
        print(f"{name}: {wrong or 'ok'}{' (known)' * is_known}\n    {first}", flush=True)
    print(f"{len(names)} programs, {failed} other than known")
    sys.exit(failed > 0)


main()
