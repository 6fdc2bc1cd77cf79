# SPDX-License-Identifier: Apache-2.0
"""Where the package's own files are: in a wheel beside its modules, in a checkout in build/."""
import pathlib
from typing import Optional

PACKAGE = pathlib.Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent.parent


def find_own(in_wheel: str, in_build: str) -> Optional[str]:
    """The path of a file of ours; None if neither a wheel nor `./dev build` put it there."""
    places = [PACKAGE / in_wheel]
    if (CHECKOUT / "include/drystone/drystone.h").is_file():
        places.append(CHECKOUT / "build" / in_build)
    return next((str(path) for path in places if path.is_file()), None)
