# SPDX-License-Identifier: Apache-2.0
from typing import Optional


class Error(RuntimeError):
    """What is wrong, in one line; of the command, with its exit status in `status`."""

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.status = status
