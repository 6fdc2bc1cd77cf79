#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with pinned memory of ours in PyTorch run to their end, without a GPU.

    pinned.py TOOL [NAME...]

The programs lie in pinned/; one more, "page", is that of doc/python/pinned.md. A line of the
text at a program's head says what it needs:

    gpus: N           so many of them; 1
    needs: VARIABLE   an environment variable; skipped, and said to be, where it is not set

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py), the shim for its release
$DRYSTONE_SHIM; without either, all are skipped. $DRYSTONE_LIBRARY is the library that is meant.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "pinned"
ROOT = HERE.parents[2]
SKIPPED = 77
SHARED = ("pinned_here",)


def read_page(folder):
    """The page's program, as a file, which imports Drystone from the checkout."""
    page = (ROOT / "doc/python/pinned.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
    path = pathlib.Path(folder) / "page.py"
    begin = f'"""The page."""\nimport sys\nsys.path.insert(0, {str(ROOT / "python")!r})\n'
    path.write_text(begin + program, encoding="utf-8")
    return path


def read_head(path):
    head = path.read_text().split('"""')[1]
    return {"gpus": "1", **dict(re.findall(r"^(gpus|needs): (.*)$", head, re.M))}


def run(tool, path, torch, folder):
    """None, or what is wrong."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")
           and not key.startswith("BUDDY_")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    words = [tool, "dry-run", "--json", "--card", "h100-80", "--gpus", read_head(path)["gpus"],
             "--output", pathlib.Path(folder) / f"{path.stem}.pickle", "--", sys.executable, path]
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        return None
    end = "\n".join(done.stderr.splitlines()[-12:])
    return f"exit status {done.returncode}\n{end}"


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    if not os.path.isfile(os.environ.get("DRYSTONE_SHIM", "")):
        print("SKIPPED: no shim for this release of PyTorch in DRYSTONE_SHIM")
        sys.exit(SKIPPED)
    os.environ.setdefault("DRYSTONE_LIBRARY", str(tool.parents[1] / "src/libdrystone.so.0"))
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [*sorted(HERE.glob("*.py")), read_page(folder)]
        chosen = [path for path in paths if path.stem not in SHARED
                  and (not sys.argv[2:] or path.stem in sys.argv[2:])]
        for path in chosen:
            missing = read_head(path).get("needs")
            if missing and not os.environ.get(missing):
                print(f"SKIPPED: {path.stem}: {missing} is not set", flush=True)
                skipped += 1
                continue
            wrong = run(tool, path, torch, folder)
            print(f"{path.stem}: {wrong or 'ok'}", flush=True)
            failed += wrong is not None
    print(f"{len(chosen)} programs, {failed} wrong, {skipped} skipped")
    sys.exit(1 if failed or not chosen else 0)


main()
