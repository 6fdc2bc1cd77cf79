# SPDX-License-Identifier: Apache-2.0
"""The drystone command and its library: where they are, and one call of the command."""
import ctypes
import ctypes.util
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from ._errors import PlanError


def find_command():
    """$DRYSTONE, else what PATH has."""
    found = os.environ.get("DRYSTONE") or shutil.which("drystone")
    if not found:
        raise PlanError("there is no drystone command: set DRYSTONE to its path")
    return found


def find_library():
    """$DRYSTONE_LIBRARY, else what lies beside a command that was built, else the system's."""
    given = os.environ.get("DRYSTONE_LIBRARY")
    if given:
        return given
    command = os.environ.get("DRYSTONE") or shutil.which("drystone")
    if command:
        built = pathlib.Path(command).resolve().parent.parent / "src" / "libdrystone.so"
        if built.is_file():
            return str(built)
    return ctypes.util.find_library("drystone")


def load_library():
    """None where there is none."""
    path = find_library()
    try:
        return ctypes.CDLL(path) if path else None
    except OSError:
        return None


def run_command(words, command=None):
    """What the command printed as JSON: 0, 1 and, of a budget that is too small, 3 have some."""
    done = subprocess.run([command or find_command(), *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1) and not (done.returncode == 3 and done.stdout.strip()):
        said = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise PlanError(said, done.returncode)
    try:
        return json.loads(done.stdout)
    except ValueError as why:
        raise PlanError(f"drystone {words[0]} did not print JSON: {why}",
                        done.returncode) from None


def run_on(value, before, after, command=None):
    """The command on a value that is handed over as a file."""
    with tempfile.TemporaryDirectory(prefix="drystone-") as folder:
        path = os.path.join(folder, "chain.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, allow_nan=False)
        return run_command([*before, path, *after], command)
