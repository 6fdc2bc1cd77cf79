#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command that SKILL.md teaches runs, and its code compiles: skill.py TOOL MAKE_CASES

The recordings are a labelled program and what `drystone demo` records. A command ends with
0, or with 1 where it found something; everything else is a mistake in the text.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

tool, make_cases = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
skill = pathlib.Path(__file__).resolve().parents[3] / "doc" / "skill" / "drystone" / "SKILL.md"
text = skill.read_text()
blocks = dict.fromkeys(("sh", "python"), "")
for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
    blocks[language] += body


TRAIN = """
import torch
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.zeros(8, 512, device="cuda")).sum().backward()
    optimizer.step()
"""
torch = os.environ.get("DRY_TEST_TORCH")


def run(line, folder):
    env, is_dry = dict(os.environ), line.split()[1] in ("dry-run", "fit")
    if is_dry and not torch:
        return True
    if is_dry:
        env.update(PYTHONPATH=torch, TORCH_USE_RTLD_GLOBAL="1")
    done = subprocess.run(["bash", "-c", f'drystone() {{ "{tool}" "$@"; }}; {line}'],
                          cwd=folder, capture_output=True, text=True, env=env)
    if done.returncode not in (0, 1) or not done.stdout:
        print(f"{line}\nexit {done.returncode}\n{done.stderr}")
        return False
    return True


head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", text)
assert head and head.group(1) == skill.parent.name and len(head.group(2)) <= 1024
assert len(text.splitlines()) <= 150
compile(blocks["python"], str(skill), "exec")
lines = blocks["sh"].splitlines()
taught = {line.split()[1] for line in lines}
named = re.search(r"every\ncommand takes `--json`, except (.*?)\.", text, re.DOTALL)
shown = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout
commands = set(re.findall(r"^  ([a-z]\S*) ", shown, re.MULTILINE)) - {"help"}
silent = {name for name in commands if "--json" not in subprocess.run(
    [tool, name, "--help"], capture_output=True, text=True, check=True).stdout}
assert named and set(re.findall("`([a-z-]+)`", named.group(1))) == silent, silent
assert {"info", "explain", "top", "steps", "sweep", "replay", "diff", "dry-run", "fit"} <= taught, taught
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([make_cases, folder], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(folder / "fragmentation-pinned.pickle", folder / "oom.pickle")
    subprocess.run([tool, "demo", "--capacity", "24GiB", "--output", folder / "run.pickle"], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.copy(folder / "run.pickle", folder / "after.pickle")
    (folder / "train.py").write_text(TRAIN)
    (folder / "train.log").write_text("step 7\nRuntimeError: CUDA out of memory. Tried to "
                                      "allocate 2.00 GiB\n")
    sys.exit(not all([run(line, folder) for line in lines]))
