#!/usr/bin/env python3
"""The pages of the views and of a job: page.py SOURCE. Skips loudly without node, its packages or a Chromium.

The tracked pages are what their sources make; the modules are tested in node, the pages in a browser.
"""
import os
import pathlib
import shutil
import subprocess
import sys

SKIP = 77
viewer = pathlib.Path(sys.argv[1]) / "viewer"


def skip(why):
    print(f"SKIPPED: the page is untested: {why}")
    sys.exit(SKIP)


def run(*command):
    print("+", *command, flush=True)
    subprocess.run(command, cwd=viewer, check=True)


if not shutil.which("node"):
    skip("node is not installed")
if not (viewer / "node_modules" / "esbuild").exists():
    skip("run `npm ci --ignore-scripts` in viewer first")
run("node", "node_modules/typescript/bin/tsc", "--noEmit")
run("node", "build.mjs", "--check")
run("node", "--test", *sorted(map(str, (viewer / "test" / "unit").glob("*.test.mjs"))))
names = ("chromium", "chromium-headless-shell", "google-chrome")
if not os.environ.get("CHROMIUM") and not any(map(shutil.which, names)):
    skip("there is no Chromium")
for pages in "browser.mjs", "looks.mjs", "fleet.mjs":
    run("node", "--test", "--test-timeout=300000", f"test/{pages}")
