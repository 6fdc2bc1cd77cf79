# SPDX-License-Identifier: Apache-2.0


class Error(RuntimeError):
    """What is wrong, in one line; of the command, with its exit status in `status`."""

    def __init__(self, text, status=None):
        super().__init__(text)
        self.status = status
