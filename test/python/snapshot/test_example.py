#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""example/snapshot_tables.py shows what it says, and refuses in one line; so does doc/python.md."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import snapshot_here as here

FRAMES = ("numpy", "pandas", "pyarrow", "polars", "duckdb")


def run(*words):
    environment = dict(os.environ, PYTHONPATH=str(here.ROOT / "python"),
                       PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run([sys.executable, str(here.ROOT / "example/snapshot_tables.py"), *words],
                          capture_output=True, text=True, env=environment, check=False)


class Example(unittest.TestCase):
    def test_a_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(here.write_snapshot(folder))
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines(), [
            "verdict: fragmentation, at the peak",
            "alive then: 0.080 GiB in 41 allocations",
            "     0.080 GiB  model.py:7 forward",
            "allocated over the recording:",
            "     0.156 GiB  model.py:7 forward"])

    def test_no_snapshot(self):
        done = run("/no/such/file")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "snapshot_tables.py: /no/such/file: cannot open: "
                                      "No such file or directory\n")


class Page(unittest.TestCase):
    """The programs of doc/python.md, run one after the other."""

    def run_blocks(self, count):
        page = (here.ROOT / "doc/python.md").read_text(encoding="utf-8")
        program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:count])
        with tempfile.TemporaryDirectory() as folder:
            here.write_snapshot(folder, file="snapshot.pickle")
            path = os.pathsep.join([str(here.ROOT / "python"), *sys.path])
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                  env=dict(os.environ, PYTHONPATH=path), cwd=folder, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("fragmentation "))

    def test_plain_python(self):
        self.run_blocks(1)

    @unittest.skipUnless(all(map(importlib.util.find_spec, FRAMES)), "no " + " or ".join(FRAMES))
    def test_data_frames(self):
        self.run_blocks(2)


if __name__ == "__main__":
    here.main()
