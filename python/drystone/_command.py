# SPDX-License-Identifier: Apache-2.0
"""The drystone command: where it is, and one call of it."""
import json
import os
import shutil
import subprocess
import tempfile

from ._errors import Error


def find_command(error=Error):
    """$DRYSTONE, else what PATH has; `error` is raised where there is none."""
    found = os.environ.get("DRYSTONE") or shutil.which("drystone")
    if not found:
        raise error("there is no drystone command: set DRYSTONE to its path")
    return found


def read_command(words, command=None, error=Error):
    """What the command printed: 0, 1 and, of a budget that is too small, 3 have some.

    `error`, a kind of Error, is raised with the command's line and its exit status.
    """
    done = subprocess.run([command or find_command(error), *words], capture_output=True,
                          encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1) and not (done.returncode == 3 and done.stdout.strip()):
        said = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise error(said, done.returncode)
    return done.stdout


def run_command(words, command=None, error=Error):
    """What the command printed as JSON; the rest is as with read_command()."""
    try:
        return json.loads(read_command(words, command, error))
    except ValueError as why:
        raise error(f"drystone {words[0]} did not print JSON: {why}") from None


def run_on(value, before, after, command=None, error=Error):
    """The command on a value that is handed over as a file."""
    with tempfile.TemporaryDirectory(prefix="drystone-") as folder:
        path = os.path.join(folder, "chain.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, allow_nan=False)
        return run_command([*before, path, *after], command, error)
