# SPDX-License-Identifier: Apache-2.0
"""`drystone ...` and `python -m drystone ...`: becomes the command."""
import os
import sys

from ._command import find_command
from ._errors import Error


def main() -> None:
    """Execute the command with this program's arguments; does not return."""
    try:
        command = find_command(but=sys.argv[0])
        os.execv(command, ["drystone", *sys.argv[1:]])
    except (Error, OSError) as why:
        sys.exit(f"drystone: {why}")


if __name__ == "__main__":
    main()
