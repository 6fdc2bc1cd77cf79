#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the command's output with what is kept:
golden.py [--update] [--cases MAKE_CASES] TOOL CASE...

A case is a text file: `$ drystone ARGUMENTS` lines, each followed by what the command
prints (standard output, then standard error) and by `exit N`. Commands run in a copy of
test/data, so that they may write; words like COLUMNS=60 in front set the environment.
MAKE_CASES adds the labelled snapshots to it. Machines (test/data/machines) are unpacked to
folders that stand for their /sys and /proc.
"""
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

arguments = sys.argv[1:]
update = "--update" in arguments
if update:
    arguments.remove("--update")
data = pathlib.Path(tempfile.mkdtemp())
if arguments[0] == "--cases":
    subprocess.run([pathlib.Path(arguments[1]).resolve(), data], check=True,
                   stdout=subprocess.DEVNULL)
    del arguments[:2]
tool = pathlib.Path(arguments[0]).resolve()
shutil.copytree(pathlib.Path(__file__).resolve().parent.parent / "data", data,
                dirs_exist_ok=True)
for machine in (data / "machines").glob("*.txt"):
    for part in machine.read_text().split("== /")[1:]:
        path, text = part.split("\n", 1)
        file = machine.with_suffix("") / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "environ":
            text = text.replace("\n", "\0")
        file.write_text(text)


def run(line):
    words = shlex.split(line[len("$ drystone"):])
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    while words and re.fullmatch("[A-Z_]+=[^ ]*", words[0]):
        name, environment[name] = words.pop(0).split("=", 1)
    done = subprocess.run([tool, *words], cwd=data, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, errors="surrogateescape", env=environment)
    return f"{line}\n{done.stdout}{done.stderr}exit {done.returncode}\n"


failed = 0
for name in arguments[1:]:
    case = pathlib.Path(name)
    kept = case.read_text()
    lines = [line for line in kept.splitlines() if line.startswith("$ drystone")]
    now = "\n".join(run(line) for line in lines)
    if update:
        case.write_text(now)
    elif now != kept:
        failed += 1
        sys.stdout.writelines(difflib.unified_diff(
            kept.splitlines(True), now.splitlines(True), str(case), "now"))
shutil.rmtree(data)
sys.exit(failed != 0)
