#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drystone's allocator in PyTorch under everything at once, and under a driver that fails.

    stress.py TOOL [SECONDS] [--faults LIBRARY] [--seed N] [--allocator A]

Half of SECONDS (default 60) goes to placement torch, half to paged: see stress_inside.py. LIBRARY
is built from failing_driver.c: with it every driver call of a small program fails once, see
stress_faults.py. PyTorch with CUDA is $DRY_TEST_TORCH; without it all is skipped.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOOK = HERE.parents[1] / "python/drystone/torch/hook"
SKIPPED = 77


def run(tool, folder, allocator, words, **more):
    """True if the program ends with 0 under a dry run; what it printed is shown."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF")}
    env.update(PYTHONPATH=f"{HOOK}:{os.environ['DRY_TEST_TORCH']}", OMP_NUM_THREADS="1",
               DRYSTONE=str(tool), DRYSTONE_ALLOCATOR=allocator, **more)
    if allocator == "native":
        del env["DRYSTONE_ALLOCATOR"]
    done = folder / "done"
    done.unlink(missing_ok=True)
    command = [tool, "dry-run", "--json", "--card", "h100-80", "--output", folder / "none.pickle",
               "--", sys.executable, HERE / "stress_start.py", done, *words]
    ended = subprocess.run([str(word) for word in command], env=env, cwd=folder, check=False,
                           stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    is_good = done.is_file() and done.read_text() == "0"
    if not is_good:
        print(f"{allocator} {words[0]}: status {done.read_text() if done.is_file() else 'none'}, "
              f"the dry run's {ended.returncode}", flush=True)
    return is_good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--faults", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allocator", choices=["native", "torch", "paged"], help="this one alone; "
                        "native shows that the model is right")
    given = parser.parse_args()
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere")
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        allocators = [given.allocator] if given.allocator else ["torch", "paged"]
        for allocator in allocators:
            good &= run(given.tool, folder, allocator,
                        ["stress_inside.py", given.seconds / len(allocators), given.seed])
            if given.faults:
                for conf in ("", "expandable_segments:True") if allocator == "torch" else ("",):
                    good &= run(given.tool, folder, allocator,
                                ["stress_faults.py", given.faults], DRYSTONE_ALLOCATOR_CONF=conf,
                                DRY_PRELOAD=str(given.faults))
    sys.exit(0 if good else 1)


main()
