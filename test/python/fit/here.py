# SPDX-License-Identifier: Apache-2.0
"""Programs that run with changes, each in a process of its own, and what they tell."""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from torch_here import ROOT, main  # noqa: E402, F401, I001  (first: skips where there is no torch)

import programs  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402, F401  (loaded once, not in each fork)
import torch.utils.flop_counter  # noqa: E402
from drystone import fit  # noqa: E402
from drystone.fit import _offload_saved, _states_on_host  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent


class Result:
    """What a run left: weights and gradients by step, what fit tells, its output."""

    def __init__(self, code, out, err, folder):
        self.code, self.out, self.err = code, out, err
        told, kept = folder / "told.json", folder / "kept.pt"
        self.told = json.loads(told.read_text()) if told.exists() else {}
        self.kept = torch.load(kept) if kept.exists() else None

    def offer(self, name):
        return next((one for one in self.told["offers"] if one["name"] == name), None)


def run(name, changes=None, looks=False):
    """Run programs.py's program of this name; changes None and no looks: as it is.

    The process is a fork of this one, which imported PyTorch and did nothing with it.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            _be_program(folder, name, changes, looks, out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return Result(status, out.read(), err.read(), pathlib.Path(folder))


def _be_program(folder, name, changes, looks, out, err):
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        if changes is not None or looks:
            _offload_saved.LEAST = 256  # bytes: nets are small here
            _states_on_host.PIECE = 4096
            fit._before(json.dumps({"changes": changes or {}, "looks": looks, "counts": looks}))
            fit._begin(lambda name, then: then() if name in sys.modules else None)
        programs.main(folder, name)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_hooked(name, changes, first=""):
    """The same in a new interpreter, which the hook makes ready; `first`: Python before it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(ROOT / "python/drystone/torch/hook"), os.environ.get("DRY_TEST_PYTHON", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
               "PYTHONWARNINGS": "ignore",
               "DRYSTONE_FIT": json.dumps({"changes": changes, "looks": False})}
        text = f"{first}\nimport sys; sys.path.insert(0, {str(FOLDER)!r})\n" \
               f"import programs; programs.main({folder!r}, {name!r})"
        done = subprocess.run([sys.executable, "-c", text],
                              env=env, capture_output=True, text=True, timeout=300)
        return Result(done.returncode, done.stdout, done.stderr, pathlib.Path(folder))


def run_patched(name, changes, more=None):
    """The same in a new interpreter, whose program applies changes; `more`: by DRYSTONE_FIT."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(ROOT / "python"), str(FOLDER), os.environ.get("DRY_TEST_PYTHON", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
               "PYTHONWARNINGS": "ignore"}
        if more:
            env["DRYSTONE_FIT"] = json.dumps({"changes": more, "looks": False})
        text = f"import drystone.fit as f; f.apply({changes}); import programs; " \
               f"programs.main({folder!r}, {name!r})"
        done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True,
                              text=True, timeout=300)
        return Result(done.returncode, done.stdout, done.stderr, pathlib.Path(folder))


@functools.cache
def run_plain(name):
    return run(name)


def distance(one, other):
    """Return the largest difference of two lists of lists of tensors, relative to the largest."""
    if one is None or other is None or [len(x) for x in one] != [len(x) for x in other]:
        return float("inf")
    far = 0.0
    for a, b in ((a, b) for x, y in zip(one, other) for a, b in zip(x, y)):
        far = max(far, float((a - b).abs().max()) / max(float(a.abs().max()), 1e-3))
    return far
