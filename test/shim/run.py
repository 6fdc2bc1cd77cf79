#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drystone's allocator inside PyTorch, over a GPU that is not there: run.py TOOL [NAME...]

Each program of programs/ runs under a dry run with each placement, and asserts what it says at its
head. Those named same_*.py run with PyTorch's own allocator, too: with placement torch, statistics
and snapshots are those of PyTorch. What is left out of the comparison stands at same().

PyTorch with CUDA is $DRY_TEST_TORCH (scripts/get_torch.py makes it); without it all are skipped.
The shim is built once, into the folder of the build.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
PYTHON = HERE.parents[1] / "python"


def start(tool, program, placement, torch, folder):
    """The program's exit status, and what it wrote."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=f"{PYTHON}:{torch}", OMP_NUM_THREADS="1", DRYSTONE=str(tool),
               DRYSTONE_LIBRARY=str(tool.parents[1] / "src/libdrystone.so"),
               XDG_CACHE_HOME=str(tool.parents[1] / "shims"), TEST_OUT=str(folder))
    # Addresses are the same in each run, so that runs can be compared.
    words = ["setarch", "-R", tool, "dry-run", "--card", "h100-80", "--gpus", "2", "--steps",
             "100000", "--output", folder / "run.pickle", "--", sys.executable, program, placement]
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=600, check=False)
    ends = (folder / "passed").exists()
    return ends, "\n".join((done.stdout + done.stderr).splitlines()[-25:])


def same(ours, theirs):
    """None, or the first difference of two dumps {"stats", "segments", "events"}.

    The program leaves out of its dump: times; stacks of segments, which PyTorch loses when a block
    is split; sizes that free blocks once had; and the order in which empty_cache() gives back
    segments of several streams, which PyTorch takes from the streams' handles.
    """
    for name in theirs:
        if ours[name] == theirs[name]:
            continue
        pairs = list(zip(ours[name], theirs[name])) if isinstance(ours[name], list) else \
            [((key, ours[name].get(key)), (key, value)) for key, value in theirs[name].items()]
        first = next(((a, b) for a, b in pairs if a != b), "one is longer")
        return f"{name} differ: {first}"
    return None


def check(tool, program, torch):
    """None, or what is wrong."""
    dumps = {}
    ways = ["torch", "paged"] + (["native"] if program.stem.startswith("same_") else [])
    for placement in ways:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            passed, text = start(tool, program, placement, torch, folder)
            if not passed:
                return f"with {placement}:\n{text}"
            if (folder / "dump.json").exists():
                dumps[placement] = json.loads((folder / "dump.json").read_text())
    return same(dumps["torch"], dumps["native"]) if "native" in dumps else None


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    programs = [path for path in sorted((HERE / "programs").glob("*.py"))
                if not sys.argv[2:] or path.stem in sys.argv[2:]]
    failed = 0
    for program in programs:
        wrong = check(tool, program, torch)
        print(f"{program.stem}: {wrong or 'ok'}", flush=True)
        failed += wrong is not None
    print(f"{len(programs)} programs, {failed} wrong")
    sys.exit(1 if failed else 0)


main()
