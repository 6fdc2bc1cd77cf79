#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drystone.fit(step) runs the command on a copy of a function. A script is that command here."""
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/support"),
                *filter(None, [os.environ.get("DRY_TEST_ARRAYS")])]
try:
    import cloudpickle
except ImportError as why:
    print(f"SKIPPED: no cloudpickle: {why}")
    sys.exit(77)
from said import main  # noqa: E402

import drystone  # noqa: E402

COMMAND = """#!{python}
import json, pathlib, subprocess, sys
words, program = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
if "--card=none" in words:
    print("drystone fit: --card none: no card", file=sys.stderr)
    sys.exit(2)
ran = subprocess.run(program, capture_output=True, text=True)
pathlib.Path(words[words.index("-o") + 1]).write_text(json.dumps(
    {{"schema": "drystone.fit/1", "words": words, "ran": ran.stdout + ran.stderr,
      "fits_with": [{{"change": "one", "changes": {{"checkpoint": 2}}}}]}}))
print("a table\\n\\ndrystone fit --apply 1 -- PROGRAM runs it so, by", words[-1])
sys.exit(1)
"""
base = 40


def step():
    print("step", base + 2, flush=True)


class Search(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = pathlib.Path(folder.name, "drystone")
        command.write_text(COMMAND.format(python=sys.executable))
        command.chmod(0o755)
        patched = unittest.mock.patch.dict(os.environ, {"DRYSTONE": str(command)})
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_function_runs_in_another_process(self):
        found = drystone.fit(step, card="l4", memory=1 << 30, runs=3)
        self.assertEqual(found.ran, "step 42\n")
        self.assertEqual(found.words[:5], ["fit", "--card=l4", "--memory=1073741824B", "--gpus=1",
                                           "--runs=3"])
        self.assertEqual((str(found), found.command), ("a table\n", "fit"))
        self.assertEqual(found.to_dict()["fits_with"][0]["changes"], {"checkpoint": 2})
        self.assertIn("checkpoint", json.dumps(found.to_dict()))
        self.assertIn("change", found._repr_html_())

    def test_a_function_of_a_module_and_a_closure(self):
        def inner():
            return print("inner", sorted(bases))

        bases = {3, 1}
        self.assertEqual(drystone.fit(inner).ran, "inner [1, 3]\n")
        self.assertEqual(drystone.fit(cloudpickle.dumps.__class__).ran[:9], "Traceback")

    def test_errors(self):
        with self.assertRaisesRegex(drystone.Error, "no card") as raised:
            drystone.fit(step, card="none")
        self.assertEqual(raised.exception.status, 2)
        with self.assertRaisesRegex(drystone.ArgumentError, "expected a function, got 7"):
            drystone.fit(7)
        lock = threading.Lock()
        with self.assertRaisesRegex(drystone.ArgumentError, "cannot be copied .*lock"):
            drystone.fit(lambda: lock)
        with unittest.mock.patch.dict(sys.modules, {"cloudpickle": None}), \
                self.assertRaisesRegex(drystone.Error, "needs the package cloudpickle"):
            drystone.fit(step)


if __name__ == "__main__":
    main()
