# SPDX-License-Identifier: Apache-2.0
"""Drystone's allocator in PyTorch beside PyTorch's own: `bench/run torch [short]`

Pairs of free and alloc in C++ and in Python, CPU time, and GPT-2's reserved peak, over the dry
run's stand-in. The allocators take turns, a process each. PyTorch is in the folder $DRY_TEST_TORCH
(scripts/get_torch.py makes one), which must have CUDA's headers beside it, see
python/drystone/torch/_build.py.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOOK = ROOT / "python/drystone/torch/hook"
ALLOCATORS = ("native", "torch", "paged")
DEMANDED = {"C++": 0.35, "Python": 0.75}  # paged beside native
CONFS = {"native": {},
         "native, expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
         "torch": {"DRYSTONE_ALLOCATOR": "torch"}, "paged": {"DRYSTONE_ALLOCATOR": "paged"}}


def dry_run(tool, folder, words, more):
    """What a program under a dry run wrote on standard output."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "DRYSTONE_ALLOCATOR", "DRYSTONE_LIBRARY")}
    env.update(PYTHONPATH=f"{HOOK}:{os.environ['DRY_TEST_TORCH']}", DRYSTONE=str(tool), **more)
    done = subprocess.run([str(word) for word in
                           (tool, "dry-run", "--card", "h100-80", "-o", folder / "x.pickle",
                            *words)], env=env, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def build_pairs(folder):
    """torch_pair.cc as a library for the PyTorch that is measured."""
    sys.path[:0] = [str(ROOT / "python"), os.environ["DRY_TEST_TORCH"]]
    from drystone.torch import _build
    torch = pathlib.Path(os.environ["DRY_TEST_TORCH"], "torch")
    headers = _build.cuda_headers(torch)
    if headers is None:
        sys.exit(f"{torch.parent}: no headers of CUDA's runtime")
    library = folder / "libtorch_pair.so"
    includes = [f"-isystem{path}" for path in
                (torch / "include", torch / "include/torch/csrc/api/include", headers)]
    subprocess.run([*_build.compiler(), "-std=c++20", "-O2", "-fPIC", "-shared", *includes,
                    ROOT / "bench/torch_pair.cc", "-o", library, f"-L{torch / 'lib'}", "-lc10_cuda",
                    "-lc10", "-Wl,--allow-shlib-undefined"], check=True)
    return library


def measure_pairs(tool, folder, is_short):
    """{allocator: {what: nanoseconds}}: medians of rounds in which they take turns."""
    library = build_pairs(folder)
    rounds, pairs = (1, 40_000) if is_short else (5, 200_000)
    found = {allocator: [] for allocator in ALLOCATORS}
    for _ in range(rounds):
        for allocator in ALLOCATORS:
            more = {} if allocator == "native" else {"DRYSTONE_ALLOCATOR": allocator}
            out, errors = dry_run(tool, folder, ["--", sys.executable, ROOT / "bench/torch_pair.py",
                                                 library, pairs], more)
            lines = [line for line in out.splitlines() if line.startswith("{")]
            if not lines:
                sys.exit(f"{allocator}: {errors[-2000:]}")
            found[allocator].append(json.loads(lines[0]))
    return {allocator: {what: statistics.median(one[what] for one in results)
                        for what in results[0]} for allocator, results in found.items()}


def print_pairs(found):
    print(f"\n{'CPU ns, a free and an alloc':36}{'native':>8}{'torch':>8}{'paged':>8}"
          f"{'torch/n':>9}{'paged/n':>9}{'wanted':>8}")
    for what, native in found["native"].items():
        ours = [found[allocator][what] for allocator in ("torch", "paged")]
        wanted = DEMANDED[what.split(",")[0]]
        print(f"{what:36}{native:8.0f}{ours[0]:8.0f}{ours[1]:8.0f}{ours[0] / native:9.2f}"
              f"{ours[1] / native:9.2f}{wanted:8.2f}")


def print_peaks(tool, folder):
    print("\nGPT-2 124M, batch 8, MiB at the peak   allocated  reserved")
    for name, more in CONFS.items():
        out, errors = dry_run(tool, folder, ["--json", "--", sys.executable, ROOT / "bench/gpt2.py",
                                             "8"], more)
        if not out.startswith("{"):
            sys.exit(f"{name}: {errors[-2000:]}")
        result = json.loads(out)
        print(f"{name:36}{result['allocated_peak_bytes'] / 2**20:12.0f}"
              f"{result['reserved_peak_bytes'] / 2**20:10.0f}")


def run(is_short, machine, build):
    if not os.environ.get("DRY_TEST_TORCH"):
        sys.exit("DRY_TEST_TORCH: no PyTorch; scripts/get_torch.py makes one")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["all"])  # the shared library has its version in its name
        tool = folder / "build/tool/drystone"
        print(machine, flush=True)
        print_pairs(measure_pairs(tool, folder, is_short))
        print_peaks(tool, folder)
