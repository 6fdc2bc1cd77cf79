#!/usr/bin/env python3
"""The page of the views: page.py SOURCE. Skips loudly without node, its packages or a Chromium.

The tracked page is what its sources make; its modules are tested in node, the page in a browser.
"""
import os
import pathlib
import shutil
import subprocess
import sys

SKIP = 77
viewer = pathlib.Path(sys.argv[1]) / "viewer"


def skip(why):
    print(f"SKIPPED, the page is untested: {why}", file=sys.stderr)
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
run("node", "--test", "--test-timeout=300000", "test/browser.mjs")
