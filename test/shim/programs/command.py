# SPDX-License-Identifier: Apache-2.0
"""python -m drystone.torch runs a program as Python does, and refuses what is none."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

PROGRAM = """
import json, sys, torch
torch.empty(1 << 20, device="cuda")
print(json.dumps([__name__, sys.argv[1:], torch.cuda.get_allocator_backend()]))
"""


def run(*words):
    return subprocess.run([sys.executable, "-m", "drystone.torch", *words], text=True,
                          capture_output=True, check=False)


path = support.OUT / "program.py"
path.write_text(PROGRAM)
done = run("--placement", support.PLACEMENT, str(path), "--batch", "8")
assert done.returncode == 0, done.stderr
assert json.loads(done.stdout.splitlines()[-1]) == ["__main__", ["--batch", "8"], "drystone"], \
    done.stdout
shown = support.OUT / "shown.py"
shown.write_text("import drystone.torch._publish as p; print(p._running.file)")
done = run("--placement", support.PLACEMENT, "--publish", str(shown))
assert done.returncode == 0 and done.stdout.startswith("drystone-live-"), done.stderr
assert not (pathlib.Path("/dev/shm") / done.stdout.strip()).exists()
os.environ["PYTHONPATH"] = f"{support.OUT}:{os.environ['PYTHONPATH']}"
done = run("-m", "program")
assert done.returncode == 0 and "drystone" in done.stdout, done.stderr
done = run(str(support.OUT / "none.py"))
assert done.returncode == 1 and "there is no such file" in done.stderr, done.stderr
assert "Traceback" not in done.stderr, done.stderr
done = run("--placement", "other", str(path))
assert done.returncode == 2 and "invalid choice" in done.stderr, done.stderr

import torch

torch.empty(1, device="cuda")  # a dry run is of a program that uses a GPU
support.passed()
