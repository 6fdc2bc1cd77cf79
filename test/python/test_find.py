#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the package looks for the command and the library, and in which order."""
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import drystone
from drystone import _place


class Find(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.package, self.checkout = self.folder / "wheel/drystone", self.folder / "checkout"
        self.path = self.file("path/drystone")
        for name, value in (("PACKAGE", self.package), ("CHECKOUT", self.checkout)):
            self.enter(mock.patch.object(_place, name, value))
        self.enter(mock.patch.dict(os.environ, {"PATH": str(self.folder / "path")}))
        for name in ("DRYSTONE", "DRYSTONE_LIBRARY"):
            os.environ.pop(name, None)

    def enter(self, change):
        change.start()
        self.addCleanup(change.stop)

    def file(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.chmod(0o755)
        return str(path)

    def test_the_path_comes_last(self):
        self.assertEqual(drystone.find_command(), self.path)
        own = self.file("wheel/drystone/bin/drystone")
        self.assertEqual(drystone.find_command(), own)
        os.environ["DRYSTONE"] = "/given"
        self.assertEqual(drystone.find_command(), "/given")

    def test_a_checkout_has_its_own_build(self):
        built = self.file("checkout/build/tool/drystone")
        self.assertEqual(drystone.find_command(), self.path)  # some other folder called build
        self.file("checkout/include/drystone/drystone.h")
        self.assertEqual(drystone.find_command(), built)

    def test_a_script_does_not_find_itself(self):
        os.environ["DRYSTONE"] = str(self.folder / "wheel/../path/drystone")
        self.package.mkdir(parents=True)
        with self.assertRaises(drystone.Error) as caught:
            drystone._command.find_command(but=self.path)
        self.assertIn("set DRYSTONE", str(caught.exception))

    def test_a_library_lies_beside_the_command_that_was_given(self):
        own = self.file("wheel/drystone/lib/libdrystone.so.0")
        self.assertEqual(drystone.find_library(), own)
        os.environ["DRYSTONE"] = self.file("build/tool/drystone")
        built = self.file("build/src/libdrystone.so")
        self.assertEqual(drystone.find_library(), built)
        os.environ["DRYSTONE_LIBRARY"] = "/given.so"
        self.assertEqual(drystone.find_library(), "/given.so")

    def test_a_library_lies_in_the_folders_that_distributions_have(self):
        for place in ("lib64/libdrystone.so.0", "lib/x86_64-linux-gnu/libdrystone.so.0",
                      "bin/libdrystone.so.0"):
            prefix = place.replace("/", "-")
            os.environ["DRYSTONE"] = self.file(f"{prefix}/bin/drystone")
            library = self.file(f"{prefix}/{place}")
            self.assertEqual(drystone.find_library(), library)


if __name__ == "__main__":
    unittest.main()
