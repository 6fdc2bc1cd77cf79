#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every line of code that `explain --message` proposes compiles: snippets.py TOOL

The messages are those of test/corpus/message and test/data/messages, which have one of each
kind. Python judges Python, and bash judges what is for a shell; neither runs any of it.
"""
import json
import pathlib
import subprocess
import sys

tool = pathlib.Path(sys.argv[1]).resolve()
test = pathlib.Path(__file__).resolve().parents[2]
logs = [*(test / "corpus" / "message").iterdir(), *(test / "data" / "messages").glob("**/texts/*/*")]


def steps_of(path):
    """The steps of all messages in a file, and the forms of these."""
    with path.open("rb") as log:
        done = subprocess.run([tool, "explain", "--message", "-", "--json"], stdin=log,
                              capture_output=True, text=True)
    messages = json.loads(done.stdout)["messages"] if done.returncode == 1 else []
    return ([step for message in messages for step in message["steps"]],
            {message["form"] for message in messages})


def compiles(language, code):
    if language == "python":
        try:
            compile(code, "step", "exec")
        except SyntaxError as error:
            return f"{error}"
        return None
    done = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True)
    return done.stderr or None


seen, forms, bad = {}, set(), 0
for path in sorted(logs):
    steps, found = steps_of(path)
    forms |= found
    for step in steps:
        if step["code"]:
            seen[step["language"], step["code"]] = path.name
for (language, code), name in seen.items():
    complaint = compiles(language, code)
    if complaint:
        bad += 1
        print(f"{name}: {language} that does not compile: {code!r}\n  {complaint}")
many_lines = sum("\n" in code for _, code in seen)
missing = {"modern", "host", "xla", "xla_program", "kv_cache", "nccl", "library", "killed",
           "killed_in_group", "slurm"} - forms
print(f"{len(seen)} snippets, {many_lines} of several lines; missing forms: {missing}")
sys.exit(bad > 0 or many_lines < 3 or len(seen) < 20 or bool(missing))
