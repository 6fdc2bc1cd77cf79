# SPDX-License-Identifier: Apache-2.0
"""libdrystone: where it is, and the library loaded by ctypes."""
import ctypes
import ctypes.util
import os
import pathlib
import shutil


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
