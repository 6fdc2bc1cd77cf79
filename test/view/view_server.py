# SPDX-License-Identifier: Apache-2.0
"""A `drystone view` to ask, for tests and benchmarks."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import served  # noqa: E402


class Server(served.Served):
    """One `drystone view`, from its beginning to its end."""

    def __init__(self, tool, *words):
        super().__init__(tool, "view", *words, environment=served.without_display())
        assert self.address == f"http://127.0.0.1:{self.port}/{self.address.split('/')[3]}/"
        self.token = self.address.split("/")[3]

    def answer(self, key):
        return self.ask(f"/{self.token}/a/{key}")
