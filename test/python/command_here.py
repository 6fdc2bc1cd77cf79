# SPDX-License-Identifier: Apache-2.0
"""The drystone command for tests: $DRYSTONE, which meson sets."""
import os
import subprocess


def has_command(name):
    words = [os.environ.get("DRYSTONE", "drystone"), name, "--help"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
