#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debian's packages: made, unpacked side by side, and used from there.

Without debhelper this is skipped. The packages' own tests are those of the other suites. Their
contents do not depend on the compiler's optimisation, which takes most of the time: it is off.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
NEEDED = ("dpkg-buildpackage", "dh", "dh_python3", "scdoc")
PACKAGES = ("drystone", "libdrystone0", "libdrystone-dev", "python3-drystone")


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.usr = pathlib.Path(cls.temporary.name) / "usr"
        for name in PACKAGES:
            package = next((ROOT / "build-deb").glob(f"{name}_*.deb"))
            subprocess.run(["dpkg", "-x", package, cls.temporary.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def call(self, *words):
        """Without Python's paths, and with the command of the package first in PATH."""
        changed = {"PATH": f"{self.usr / 'bin'}:/usr/bin:/bin",
                   "PYTHONPATH": str(self.usr / "lib/python3/dist-packages"),
                   "LD_LIBRARY_PATH": str(next(self.usr.glob("lib/*-linux-gnu")))}
        kept = {name: value for name, value in os.environ.items() if name == "HOME"}
        return subprocess.run(words, capture_output=True, text=True, check=False,
                              cwd=self.temporary.name, env={**kept, **changed})

    def test_the_main_job_is_done(self):
        done = self.call("drystone", "demo")
        self.assertEqual(done.returncode, 0, done)

    def test_the_stand_in_is_found(self):
        done = self.call("drystone", "dry-run", "--", "python3", "-c", "pass")
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("this Python has no torch", done.stderr)
        self.assertTrue(list(self.usr.glob("lib/*/drystone/libdrystone-standin.so")))

    def test_python_finds_the_command(self):
        done = self.call("python3", "-m", "drystone", "--version")
        self.assertEqual(done.stdout.split()[0], "drystone", done)

    def test_each_file_is_in_its_package(self):
        for name in ("bin/drystone", "share/man/man1/drystone.1.gz", "lib/*/libdrystone.so.0",
                     "lib/*/libdrystone.a", "lib/*/pkgconfig/drystone.pc",
                     "include/drystone/pool.h", "lib/*/drystone/hook/sitecustomize.py",
                     "share/drystone/schema/info.schema.json"):
            self.assertTrue(list(self.usr.glob(name)), name)


if __name__ == "__main__":
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print(f"SKIPPED: there is no {missing[0]}")
        sys.exit(SKIPPED)
    subprocess.run([ROOT / "packaging/make_deb", "--no-tests"], check=True,
                   env={**os.environ, "DEB_BUILD_OPTIONS": "noopt"})
    unittest.main()
