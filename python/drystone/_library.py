# SPDX-License-Identifier: Apache-2.0
"""libdrystone: where it is, and the library loaded by ctypes."""
import ctypes
import ctypes.util
import os
import pathlib
import shutil
from typing import Optional

from ._place import find_own


def find_library() -> Optional[str]:
    """$DRYSTONE_LIBRARY, else the one of the build that $DRYSTONE names, else the package's
    own, else that of the build whose command is in PATH, else the system's."""
    return (os.environ.get("DRYSTONE_LIBRARY") or _beside(os.environ.get("DRYSTONE"))
            or find_own("lib/libdrystone.so.0", "src/libdrystone.so")
            or _beside(shutil.which("drystone")) or ctypes.util.find_library("drystone"))


def _beside(command: Optional[str]) -> Optional[str]:
    """What lies in the build that made the command."""
    if command:
        built = pathlib.Path(command).resolve().parent.parent / "src" / "libdrystone.so"
        if built.is_file():
            return str(built)
    return None


def load_library() -> Optional[ctypes.CDLL]:
    """None where there is none."""
    path = find_library()
    try:
        return ctypes.CDLL(path) if path else None
    except OSError:
        return None
