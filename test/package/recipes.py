#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of other packages: conda's renders, and all name one version.

rattler-build comes from the package index: without it this is skipped. No channel is asked, so
what the recipe needs is not resolved here.
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
RECIPE = ROOT / "packaging/conda/recipe.yaml"
VENV = ROOT / "build-wheel/conda"
RENDER = """
import json, sys
from rattler_build import Stage0Recipe, VariantConfig
chosen = {"python": ["3.12"], "c_compiler": ["gcc"], "c_stdlib": ["sysroot"]}
made = Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig(chosen))
part = made[0].recipe
json.dump([len(made), (part() if callable(part) else part).to_dict()], sys.stdout)
"""


def version_in(name, pattern):
    return re.search(pattern, (ROOT / name).read_text())[1]


class Recipes(unittest.TestCase):
    def test_all_name_one_version(self):
        wanted = version_in("meson.build", r"version: '([\d.]+)'")
        self.assertEqual(version_in("packaging/debian/changelog", r"\((.*?)\)"), wanted)
        self.assertEqual(version_in("packaging/conda/recipe.yaml", r'version: "(.*)"'), wanted)

    def test_conda_s_recipe_renders(self):
        done = subprocess.run([VENV / "bin/python", "-c", RENDER, RECIPE], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'^\[1, .*"drystone = drystone.__main__:main"')


def get_rattler():
    if (VENV / "ready").exists():
        return True
    for words in ([sys.executable, "-m", "venv", "--clear", VENV],
                  [VENV / "bin/python", "-m", "pip", "install", "-q", "py-rattler-build"]):
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            return False
    (VENV / "ready").touch()
    return True


if __name__ == "__main__":
    if not get_rattler():
        print("SKIPPED: no py-rattler-build to be had")
        sys.exit(SKIPPED)
    unittest.main()
