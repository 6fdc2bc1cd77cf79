#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exercises of example/ run, and show what they are there to show."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from command_here import has_command

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "example"


def run(name, *words, status=0):
    environment = dict(os.environ, PYTHONWARNINGS="ignore", PYTHONDONTWRITEBYTECODE="1")
    if os.environ.get("DRY_TEST_PYTHON"):
        environment.update(PYTHONPATH=os.environ["DRY_TEST_PYTHON"], OMP_NUM_THREADS="1",
                           TORCH_USE_RTLD_GLOBAL="1")
    done = subprocess.run([sys.executable, str(FOLDER / name), *words], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def has_torch():
    words = [sys.executable, "-c", "import torch_here"]
    return subprocess.run(words, check=False, cwd=FOLDER.parent / "test/python").returncode == 0


class Fragmentation(unittest.TestCase):
    def test_changing_lengths_fragment_and_pages_do_not(self):
        text = run("fragmentation.py", "--steps", "12")
        above = [float(number) for number in re.findall(r"([0-9.]+) % above", text)]
        self.assertEqual(len(above), 12)
        one, many = above[:4], above[4:8]
        self.assertGreater(many[0], one[0])  # by PyTorch's defaults
        self.assertLess(many[3], 3)          # by pages that move


class WithTorch(unittest.TestCase):
    def test_peak_by_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "peak.svg")
            text = run("peak_by_batch.py", "--batches", "1,2", "--layers", "3", "--svg", path,
                       "--budget", "16MiB")
            drawn = xml.etree.ElementTree.parse(path).getroot()
        self.assertIn("up to batch", text)
        self.assertEqual(len(drawn.findall("{*}polyline")), 1 + 4 + 1)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_checkpoint_or_not(self):
        text = run("checkpoint_or_not.py", "--layers", "3", "--repeats", "1")
        rows = [line for line in text.splitlines() if line.endswith("same")]
        self.assertGreaterEqual(len(rows), 4)
        alive = [float(re.findall(r"([0-9.]+) MiB", row)[1]) for row in rows]
        self.assertGreater(alive[0], alive[1])  # every other stage
        self.assertGreater(alive[1], alive[2])  # each
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_auto_checkpoint(self):
        text = run("auto_checkpoint.py", "--layers", "4", "--repeats", "1", "--shares", "0.7")
        row = next(line for line in text.splitlines() if line.endswith("same"))
        budget, promised, seen = map(float, re.findall(r"([0-9.]+) MiB", row))
        self.assertLessEqual(promised, budget)
        self.assertLessEqual(seen, promised)

    def test_compile_budget(self):
        text = run("compile_budget.py", "--layers", "2", "--budgets", "1,0.5")
        self.assertIn("activation_memory_budget = 1:", text)
        self.assertEqual(len(text.splitlines()), 4)
        refused = run("compile_budget.py", "--layers", "2", "--budgets", "1", "--budget", "1KB",
                      status=1)
        self.assertIn("no activation memory budget fits 1000 bytes", refused)


if __name__ == "__main__":
    if has_torch() and has_command("plan"):
        unittest.main()
    program = unittest.main(argv=[sys.argv[0], "Fragmentation"], exit=False)
    print("SKIPPED: the exercises that need torch and drystone plan")
    sys.exit(77 if program.result.wasSuccessful() else 1)
