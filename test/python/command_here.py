# SPDX-License-Identifier: Apache-2.0
"""The drystone command for tests: $DRYSTONE, which meson sets, else that of `./dev build`."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from drystone import Error, find_command


def has_command(name):
    try:
        words = [find_command(), name, "--help"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except (Error, OSError):
        return False
