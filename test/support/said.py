# SPDX-License-Identifier: Apache-2.0
"""unittest.main() that says what was skipped, and why."""
import sys
import unittest

SKIPPED = 77


def main():
    """Run the tests of a file. Ends with 77 if one was skipped and none failed."""
    result = unittest.main(exit=False).result
    for test, why in result.skipped:
        print(f"SKIPPED: {test.id()}: {why}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
