# SPDX-License-Identifier: Apache-2.0
"""The drystone command: where it is, and one call of it."""
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any, Optional, Union

from ._errors import Error
from ._place import find_own


def find_command(error: type[Error] = Error, but: Optional[str] = None) -> str:
    """$DRYSTONE, else the package's own, else what PATH has.

    error  a kind of Error; raised where there is none
    but    a path that is passed over: a script that looks for the command is none itself
    """
    for path in (os.environ.get("DRYSTONE"), find_own("bin/drystone", "tool/drystone"),
                 shutil.which("drystone")):
        if path and not (but and _is_same(path, but)):
            return path
    raise error("there is no drystone command: set DRYSTONE to its path")


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def with_unit(size: Union[int, str]) -> str:
    """A size as the command takes it: a number is bytes, and says so."""
    return size if isinstance(size, str) else f"{int(size)}B"


def read_command(words: Sequence[str], command: Optional[str] = None,
                 error: type[Error] = Error) -> str:
    """What the command printed: 0 and 1, what was found, have some.

    `error`, a kind of Error, is raised with the command's line and its exit status.
    """
    done = subprocess.run([command or find_command(error), *words], capture_output=True,
                          encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout.strip()):
        said = done.stderr.strip() or f"it ended with status {done.returncode}"
        raise error(said, done.returncode)
    return done.stdout


def run_command(words: Sequence[str], command: Optional[str] = None,
                error: type[Error] = Error) -> Any:
    """What the command printed as JSON; the rest is as with read_command()."""
    try:
        return json.loads(read_command(words, command, error))
    except ValueError as why:
        raise error(f"drystone {words[0]} did not print JSON: {why}") from None


def run_on(value: Any, before: Sequence[str], after: Sequence[str],
           command: Optional[str] = None, error: type[Error] = Error) -> Any:
    """The command on a value that is handed over as a file."""
    with tempfile.TemporaryDirectory(prefix="drystone-") as folder:
        path = os.path.join(folder, "chain.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, allow_nan=False)
        return run_command([*before, path, *after], command, error)
