#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs in doc/python run as they stand: over the stand-in, or with NumPy alone.

Those of CuPy and RMM want a GPU, where test/gpu/cupy_numba.py runs them; here they are compiled.
That of pinned memory is run by test/shim/pinned.py.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import here

FOLDER = here.ROOT / "doc" / "python"
NAMES = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")


def programs_of(page):
    return re.findall(r"^```python\n(.*?)^```$", (FOLDER / page).read_text(encoding="utf-8"),
                      re.M | re.S)


def run(page, **environment):
    """Return what the page's first program prints."""
    program = here.BEGIN + programs_of(page)[0]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=dict(os.environ, **environment), check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class Documents(unittest.TestCase):
    def test_every_page_has_a_program(self):
        for page in ("tensors.md", "cupy.md", "numba.md", "rmm.md", "pinned.md"):
            programs = programs_of(page)
            self.assertTrue(programs, page)
            for program in programs:
                compile(program, page, "exec")

    def test_tensors(self):
        here.need_here(self, "numpy")
        text = run("tensors.md")
        self.assertIn("shape=(1024, 1024), dtype=float32", text)
        self.assertIn("bytes=4194304", text)

    def test_numba(self):
        here.need_here(self, "numba_cuda")
        if not os.environ.get("DRY_TEST_STANDIN"):
            self.skipTest("no stand-in in DRY_TEST_STANDIN")
        with tempfile.TemporaryDirectory() as folder:
            for name in NAMES:
                (pathlib.Path(folder) / name).symlink_to(os.environ["DRY_TEST_STANDIN"])
            text = run("numba.md", LD_LIBRARY_PATH=folder)
        self.assertIn("8192\nMemoryInfo(free=", text)


if __name__ == "__main__":
    here.main()
