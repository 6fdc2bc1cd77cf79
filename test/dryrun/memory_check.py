#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory check of pull requests, on two worktrees of a repository, and as the action's own step
runs it: memory_check.py TOOL"""
import os
import pathlib
import subprocess
import sys
import tempfile

from needs import find_torch

ACTION = pathlib.Path(__file__).resolve().parents[2] / "packaging/memory-check"
SCRIPT = ACTION / "memory_check.py"
PROGRAM = "import torch\n\nkept = torch.zeros({} << 20, dtype=torch.uint8, device='cuda')\n"
tool, torch = pathlib.Path(sys.argv[1]).resolve(), find_torch()
environment = {key: value for key, value in os.environ.items()
               if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
environment.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1", DRYSTONE=str(tool))


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *words],
                   check=True, stdout=subprocess.DEVNULL)


def commit(folder, text):
    (folder / "train.py").write_text(text)
    git(folder, "add", "train.py")
    git(folder, "commit", "-qm", "x")


def check(work, *words):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--base", work / "base", "--head", work / "head", "--work", work,
         "--card", "t4", *words, "--", sys.executable, "train.py"],
        env=environment, capture_output=True, text=True, check=False)
    return done.returncode, (work / "comment.md").read_text(), done.stderr


def find_step(name):
    """The shell text of the action's step that has this id."""
    lines = (ACTION / "action.yml").read_text().split(f"id: {name}\n")[1].splitlines()
    start = lines.index("      run: |") + 1
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("        "))
    return "\n".join(lines[start:end])


def run_step(work, head, base):
    """Run the step in a clone, as a hosted machine does, with a command of several words."""
    subprocess.run(["git", "clone", "-q", head, work / "clone"], check=True)
    given = {"BASE": base, "COMMAND": f"'{sys.executable}' train.py --name 'a b'", "CARD": "t4",
             "BASELINE": "memory.json", "FAIL_IF": "reserved_peak > baseline + 2%",
             "ACTION": str(ACTION), "RUNNER_TEMP": str(work)}
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
                           find_step("check")], env={**environment, **given},
                          cwd=work / "clone", capture_output=True, text=True, check=False)
    return done.returncode, (work / "comment.md").read_text(), done.stderr


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    head = work / "head"
    subprocess.run(["git", "init", "-q", head], check=True)
    commit(head, PROGRAM.format(512))
    git(head, "worktree", "add", "-q", "--detach", work / "base")
    commit(head, PROGRAM.format(1024))

    gate = ("--baseline", "memory.json", "--fail-if", "reserved_peak > baseline + 2%")
    status, comment, errors = check(work, *gate)
    assert status == 0, errors
    assert "| reserved | 512.00 MiB | 1.00 GiB | +512.00 MiB |" in comment, comment
    assert "| fits | fits |" in comment and "train.py:3" in comment, comment
    assert (head / "memory.json").is_file(), "the baseline is not kept"

    (head / "train.py").write_text(PROGRAM.format(20000))
    status, comment, errors = check(work, *gate)
    assert status == 1, errors
    assert "| fits | does not fit |" in comment, comment

    (head / "train.py").write_text("import missing\n")
    status, comment, errors = check(work)
    assert status == 3 and "The dry run of the head told nothing" in comment, (status, comment)

    commit(head, "import sys; assert sys.argv[1:] == ['--name', 'a b']\n" + PROGRAM.format(800))
    base = subprocess.check_output(["git", "-C", head, "rev-parse", "HEAD"], text=True).strip()
    commit(head, PROGRAM.format(900))
    git(head, "worktree", "remove", "--force", work / "base")
    status, comment, errors = run_step(work, head, base)
    assert status == 0, errors
    assert "| reserved | 800.00 MiB | 900.00 MiB | +100.00 MiB |" in comment, comment
print("the action's step runs; the comment tells both peaks, the line, a head that does not fit, and one that fails")
