#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every program of a battery runs to its end without a GPU, and its snapshot replays exactly.

    run.py TOOL [NAME...]

The programs lie in programs/; a line "card:", "gpus:", "conf:", "options:" or "expect:" of the text
at their head says what differs from a plain run. PyTorch with CUDA is $DRY_TEST_TORCH (made by
scripts/get_torch.py); without it they are skipped.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
OUTCOMES = {"fits": (0, True), "oom": (1, False), "unknown": (3, None)}


def read_head(path):
    """{"card": ..., "expect": ...} of a program."""
    head = path.read_text().split('"""')[1]
    return {"card": "h100-80", "expect": "fits",
            **dict(re.findall(r"^(card|gpus|conf|options|expect): (.*)$", head, re.M))}


def run(tool, path, folder, torch):
    """None, or what is wrong."""
    head = read_head(path)
    snapshot = folder / f"{path.stem}.pickle"
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1")
    if "conf" in head:
        env["PYTORCH_CUDA_ALLOC_CONF"] = head["conf"]
    words = [tool, "dry-run", "--json", "--card", head["card"], "--gpus", head.get("gpus", "1"),
             "--output", snapshot, *head.get("options", "").split(), "--", sys.executable, path]
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    status, fits = OUTCOMES[head["expect"]]
    end = "\n".join(done.stderr.splitlines()[-12:])
    if done.returncode != status:
        return f"exit status {done.returncode}, expected {status}\n{end}"
    result = json.loads(done.stdout)
    if result["fits"] is not fits:
        return f"fits is {result['fits']}, expected {fits}"
    check = result["self_check"]
    if not check["exact"] or check["addresses"] == 0:
        return f"the snapshot does not replay exactly: {check}"
    shown = subprocess.run([tool, "info", snapshot], capture_output=True, check=False)
    if shown.returncode != 0:
        return f"drystone info refuses the snapshot: {shown.stderr}"
    notes = [note for process in result["processes"] for note in process["notes"]]
    return f"notes: {notes}" if notes else None


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    programs = sorted((HERE / "programs").glob("*.py"))
    chosen = [path for path in programs if not sys.argv[2:] or path.stem in sys.argv[2:]]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in chosen:
            wrong = run(tool, path, pathlib.Path(folder), torch)
            print(f"{path.stem}: {wrong or 'ok'}", flush=True)
            failed += wrong is not None
    print(f"{len(chosen)} programs, {failed} wrong")
    sys.exit(1 if failed else 0)


main()
