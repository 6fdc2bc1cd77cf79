#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seam in C, in PyTorch over a CUDA that is not there: run.py TOOL LIBRARY [NAME...]

Each of programs/ asserts what it is about, and must come to its end. A line of the text at its head
says what differs from a plain run:

    gpus: N, conf: STR   what it runs on, and PYTORCH_CUDA_ALLOC_CONF
    run: WORDS           it is started by `drystone run WORDS`; {folder} is a temporary folder
    expect: TEXT         standard error has a line with this
    needs: RELEASE       of PyTorch, at least: it is skipped, and said to be, with an older one

No compiler is on PATH and no shim in the cache, so that "auto" has to fall back. PyTorch with CUDA
is $DRY_TEST_TORCH (made by scripts/get_torch.py); without it all are skipped.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[2] / "python"
SKIPPED = 77
WITHOUT = ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD", "DRYSTONE_SHIM", "PYTORCH_CUDA_ALLOC_CONF",
           "PYTORCH_ALLOC_CONF", "DRYSTONE_ALLOCATOR", "DRYSTONE_ON_OOM", "RANK")


def read_head(path):
    """{"gpus": ...} of a program."""
    return dict(re.findall(r"^(gpus|conf|run|expect|needs): (.*)$", path.read_text().split('"""')[1],
                           re.M))


def is_too_old(torch, path):
    """The release of PyTorch is older than the program needs."""
    have = re.search(r"'(\d+)\.(\d+)", (torch / "torch/version.py").read_text()).groups()
    needs = read_head(path).get("needs", "2.0").split(".")
    return [int(part) for part in have] < [int(part) for part in needs]


def run(tool, library, torch, path, folder):
    """None, or what is wrong."""
    head = read_head(path)
    env = {key: value for key, value in os.environ.items() if key not in WITHOUT}
    env.update(PYTHONPATH=f"{PYTHON}:{torch}", OMP_NUM_THREADS="1", PATH="/nowhere",
               DRYSTONE=str(tool), DRYSTONE_LIBRARY=str(library), XDG_CACHE_HOME=str(folder))
    if "conf" in head:
        env["PYTORCH_CUDA_ALLOC_CONF"] = head["conf"]
    started = folder / "started.py"  # its last line says that the program came to its end
    started.write_text(path.read_text() + "\nimport sys\nif __name__ == '__main__':\n"
                       "    print('CAME TO ITS END', file=sys.stderr)\n")
    words = [tool, "dry-run", "--card", "h100-80", "--gpus", head.get("gpus", "1"), "--output",
             folder / "dry-run.pickle", "--", sys.executable, started]
    if "run" in head:
        words = [tool, "run", "--quiet", *head["run"].format(folder=folder).split(), "--", *words]
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, cwd=folder)
    said = done.stdout + done.stderr
    end = "\n".join(said.splitlines()[-25:])
    if "CAME TO ITS END" not in said:
        return f"it did not come to its end: exit status {done.returncode}\n{end}"
    if done.returncode not in (0, 1, 3) or "ended with" in said:
        return f"exit status {done.returncode}\n{end}"
    lines = [line for line in said.splitlines() if head.get("expect", "") in line]
    return None if lines else f"nothing says {head['expect']!r}\n{end}"


def main():
    tool, library = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    failed = skipped = 0
    programs = [path for path in sorted((HERE / "programs").glob("*.py"))
                if path.stem in sys.argv[3:] or len(sys.argv) == 3]
    for path in programs:
        if is_too_old(torch, path):
            print(f"SKIPPED: {path.stem}: needs PyTorch {read_head(path)['needs']}", flush=True)
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            wrong = run(tool, library, torch, path, pathlib.Path(folder))
        print(f"{path.stem}: {wrong or 'ok'}", flush=True)
        failed += wrong is not None
    print(f"{len(programs)} programs, {failed} wrong, {skipped} skipped")
    sys.exit(1 if failed or not programs else 0)


main()
