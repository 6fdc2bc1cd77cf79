#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ranks of a job that begin together build one shim, and all take it."""
import importlib
import os
import pathlib
import sys
import tempfile
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
RANKS = 6
TORCH = types.SimpleNamespace(__version__="2.15.0")


def load_build():
    """drystone.torch._build where there is no PyTorch, which its package imports."""
    package = types.ModuleType("drystone.torch")
    package.__path__ = [str(ROOT / "python/drystone/torch")]
    sys.modules["drystone.torch"] = package
    return importlib.import_module("drystone.torch._build")


def be_a_rank(build, folder):
    """Ask for the shim; who builds it leaves time for others to be so wrong, too."""
    def make(torch, release, out, error):
        (folder / f"built-{os.getpid()}").touch()
        while len(list(folder.glob("asks-*"))) < RANKS:
            time.sleep(0.01)
        end = time.monotonic() + 0.5
        while len(list(folder.glob("built-*"))) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        out.write_bytes(b"a shim")

    build.build = make
    (folder / f"asks-{os.getpid()}").touch()
    return build.cached(TORCH, (2, 15), RuntimeError).read_bytes() == b"a shim"


class Once(unittest.TestCase):
    def test_ranks_that_begin_together_build_once(self):
        build = load_build()
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            children = []
            for _ in range(RANKS):
                child = os.fork()
                if child == 0:
                    os._exit(0 if be_a_rank(build, folder) else 1)
                children.append(child)
            ends = [os.waitpid(child, 0)[1] for child in children]
            self.assertEqual(ends, [0] * RANKS)
            self.assertEqual(len(list(folder.glob("built-*"))), 1)


if __name__ == "__main__":
    unittest.main()
