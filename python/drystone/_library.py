# SPDX-License-Identifier: Apache-2.0
"""libdrystone: where it is, and the library loaded by ctypes."""
import ctypes
import ctypes.util
import os
import pathlib
import shutil
from typing import Optional

from ._errors import Error
from ._place import find_own


def find_library() -> Optional[str]:
    """$DRYSTONE_LIBRARY, else the one of the build that $DRYSTONE names, else the package's
    own, else that of the build whose command is in PATH, else the system's."""
    return (os.environ.get("DRYSTONE_LIBRARY") or _beside(os.environ.get("DRYSTONE"))
            or find_own("lib/libdrystone.so.0", "src/libdrystone.so")
            or _beside(shutil.which("drystone")) or ctypes.util.find_library("drystone"))


def _beside(command: Optional[str]) -> Optional[str]:
    """What lies in the build that made the command, in any library folder of the prefix that it
    is installed in (lib64, lib/x86_64-linux-gnu), or in the command's own folder."""
    if command:
        folder = pathlib.Path(command).resolve().parent
        root = folder.parent
        for place, pattern in ((root, "src/libdrystone.so"), (root, "lib*/libdrystone.so.0"),
                               (root, "lib/*/libdrystone.so.0"), (folder, "libdrystone.so*")):
            for path in sorted(place.glob(pattern)):
                if path.is_file():
                    return str(path)
    return None


def load_library() -> Optional[ctypes.CDLL]:
    """None where there is none."""
    path = find_library()
    try:
        return ctypes.CDLL(path) if path else None
    except OSError:
        return None


def require(error: type[Error] = Error) -> ctypes.CDLL:
    """The library, loaded once for the process so that others link to it; `error` without one."""
    path = find_library()
    if not path:
        raise error("there is no libdrystone: set DRYSTONE_LIBRARY to its path")
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as why:
        raise error(f"{path} cannot be loaded: {why}") from None
