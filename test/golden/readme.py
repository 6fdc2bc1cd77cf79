#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md says the command prints, beside what it prints: readme.py TOOL MAKE_CASES

A sample is a block that begins with `$ drystone`; a line `...` in it stands for any lines.
oom.pickle is one of the labelled programs, run.pickle what `drystone demo` records. A
sample of a recording that is not kept here, or of a program that needs PyTorch, is passed over.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
tool, make_cases = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
elsewhere = {"run.trace", "train.py"}


def read_samples():
    blocks = re.findall(r"^```\n\$ drystone (.*)\n((?:(?!```).*\n)+)```$",
                        (root / "README.md").read_text(), re.MULTILINE)
    return [(shlex.split(words), text) for words, text in blocks]


def is_alike(sample, printed):
    pattern = re.escape(sample).replace(re.escape("...\n"), "(?:.*\n)*")
    return re.fullmatch(pattern, printed) is not None


def run(*words):
    return subprocess.run([tool, *words], capture_output=True, text=True).stdout


def compare(samples):
    failed = compared = 0
    for words, sample in samples:
        if elsewhere & set(words):
            continue
        printed = run(*words)
        compared += 1
        if not is_alike(sample, printed):
            failed += 1
            print(f"drystone {' '.join(words)} prints otherwise:\n{printed}")
    return failed or compared < 3


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([make_cases, "."], check=True, stdout=subprocess.DEVNULL)
    os.rename("fragmentation-pinned.pickle", "oom.pickle")
    os.symlink(root / "example", "example")
    run("demo", "--capacity", "24GiB", "--output", "run.pickle")
    sys.exit(compare(read_samples()))
