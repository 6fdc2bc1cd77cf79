# SPDX-License-Identifier: Apache-2.0
"""drystone.fit(step): the search of `drystone fit`, for a function instead of a program."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from .._command import find_command, with_unit
from .._errors import ArgumentError, Error
from ..snapshot._commands import option
from ..snapshot._result import Result

_PROGRAM = """\
import pickle, sys
sys.path[:0] = {paths!r}
with open({file!r}, "rb") as file:
    step = pickle.load(file)
step()
"""


def search(step: Callable[[], Any], card: str, memory: int | str | None, gpus: int,
           runs: int) -> Result:
    words = [word for name, value in (
        ("card", card), ("memory", None if memory is None else with_unit(memory)),
        ("gpus", gpus), ("runs", runs)) for word in option(name, value)]
    with tempfile.TemporaryDirectory(prefix="drystone-") as folder:
        program, result = pathlib.Path(folder, "step.py"), pathlib.Path(folder, "fit.json")
        copy = pathlib.Path(folder, "step.pickle")
        copy.write_bytes(_copy(step))
        program.write_text(_PROGRAM.format(paths=sys.path, file=str(copy)), encoding="utf-8")
        done = subprocess.run(
            [find_command(), "fit", *words, "-o", result, "--", sys.executable, program],
            capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
            check=False)
        if done.returncode not in (0, 1):
            raise Error(done.stderr.strip() or f"it ended with status {done.returncode}",
                        done.returncode)
        # --apply reads the result's file, which is deleted here
        text = done.stdout.partition("\ndrystone fit --apply")[0]
        return Result("fit", json.loads(result.read_text(encoding="utf-8")), lambda: text)


def _copy(step: Callable[[], Any]) -> bytes:
    if not callable(step):
        raise ArgumentError(f"step: expected a function, got {step!r}")
    try:
        import cloudpickle
    except ImportError:
        raise Error("drystone.fit(step) needs the package cloudpickle") from None
    try:
        copied: bytes = cloudpickle.dumps(step)
    except Exception as why:
        raise ArgumentError(f"step cannot be copied to another process: {why}") from why
    return copied
