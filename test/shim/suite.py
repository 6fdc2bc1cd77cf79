#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of its memory pass with Drystone's allocator where they pass without.

    suite.py TOOL [--only TEXT] [--keep FOLDER] [RELEASE...]

Each test runs under a dry run with PyTorch's own allocator, those that pass then with placement
torch and with paged. A test that passes with PyTorch's allocator alone is wrong, unless
suite_known.json names it with a reason. Kernels do nothing in a dry run: tests that want large
numbers fail with every allocator, and are left out.

PyTorch's tests are no part of its wheel. The folder $DRY_TEST_TORCH_TESTS has one for each
release, such as 2.15: with test_cuda.py and others of the tag's folder test/, with `venv`, a link
to a virtual environment that has that release (without it, PyTorch is in $DRY_TEST_TORCH), and with
`site`, a folder of what the tests import (expecttest, psutil). Without releases all are run;
without the folder all is skipped.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOOK = HERE.parents[1] / "python/drystone/torch/hook"
SKIPPED = 77
ALLOCATORS = ("native", "torch", "paged")
FILES = {  # of the tag, and the classes that are about memory; (): all
    "test_cuda.py": ("TestCuda", "TestCudaMallocAsync", "TestBlockStateAbsorption", "TestMemPool",
                     "TestCachingHostAllocatorCudaGraph", "TestCudaAllocator"),
    "test_cuda_multigpu.py": ("TestCudaMultiGPU",),
    "test_cuda_trace.py": (),
}


def environment(folder, tool, allocator):
    """Variables of the interpreter that runs the tests."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD", "DRYSTONE_ALLOCATOR")}
    path = [str(HOOK), str(folder / "site")]
    if not (folder / "venv").exists():
        path.append(os.environ.get("DRY_TEST_TORCH", ""))
    env.update(PYTHONPATH=":".join(path), DRYSTONE=str(tool), OMP_NUM_THREADS="1")
    if allocator != "native":
        env["DRYSTONE_ALLOCATOR"] = allocator
    return env


def run(given, folder, file, allocator, ids):
    """{test: [outcome, text]} of a file; ids are the tests, or None: all of the classes."""
    python = folder / "venv/bin/python"
    interpreter = python if python.exists() else sys.executable
    with tempfile.TemporaryDirectory() as scratch:
        order = pathlib.Path(scratch, "order.json")
        out = pathlib.Path(given.keep or scratch, f"{folder.name}-{file}-{allocator}.json")
        out.unlink(missing_ok=True)
        order.write_text(json.dumps({"file": str(folder / file), "ids": ids, "only": given.only,
                                     "classes": FILES[file], "out": str(out),
                                     "again": allocator != "native"}))
        words = [given.tool, "dry-run", "--json", "--card", "h100-80", "--gpus", "2",
                 "--output", pathlib.Path(scratch, "none.pickle"), "--",
                 interpreter, HERE / "suite_loop.py", order]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              env=environment(folder, given.tool, allocator), check=False,
                              cwd=scratch, stdin=subprocess.DEVNULL)
        if not out.is_file():
            sys.exit(f"{folder.name} {file} {allocator}: no test ran\n{done.stderr[-3000:]}")
        return json.loads(out.read_text())


def judge(results, known):
    """What is wrong, a line a test; results are {allocator: {test: [outcome, text]}}."""
    wrong = []
    for test, (outcome, _) in results["native"].items():
        if outcome != "ok":
            continue
        reason = known.get(test)
        for allocator in ALLOCATORS[1:]:
            ours, text = results[allocator].get(test, ("missing", ""))
            if ours == "ok" or (reason and allocator in reason["allocators"]):
                continue
            wrong.append(f"{allocator:6} {test}: {ours}" +
                         "".join(f"\n       {line}" for line in text.splitlines()[-6:]))
    return wrong


def run_release(given, folder, known):
    """Print the counts of a release; return how many tests are wrong."""
    count = 0
    for file in (file for file in FILES if (folder / file).is_file()):
        results = {"native": run(given, folder, file, "native", None)}
        if not results["native"]:
            continue
        passed = [test for test, (outcome, _) in results["native"].items() if outcome == "ok"]
        for allocator in ALLOCATORS[1:]:
            results[allocator] = run(given, folder, file, allocator, passed)
        for allocator in ALLOCATORS:
            tally = collections.Counter(outcome for outcome, _ in results[allocator].values())
            said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(tally.items()))
            print(f"{folder.name} {file} {allocator}: {said}", flush=True)
        wrong = judge(results, known)
        print("".join(f"{line}\n" for line in wrong), end="", flush=True)
        count += len(wrong)
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--only", default="", help="tests whose names have this text")
    parser.add_argument("--keep", help="results go to this folder and stay")
    given = parser.parse_intermixed_args()  # releases follow options
    tests = os.environ.get("DRY_TEST_TORCH_TESTS")
    if not tests:
        print("SKIPPED: no tests of PyTorch in DRY_TEST_TORCH_TESTS")
        sys.exit(SKIPPED)
    root = pathlib.Path(tests).resolve()
    releases = given.releases or sorted(path.name for path in root.iterdir() if path.is_dir())
    known = json.loads((HERE / "suite_known.json").read_text())
    wrong = 0
    for release in releases:
        if not (root / release / "test_cuda.py").is_file():
            sys.exit(f"{root / release} has no test_cuda.py")
        wrong += run_release(given, root / release, known)
    print(f"{len(releases)} releases, {wrong} wrong")
    sys.exit(1 if wrong else 0)


main()
