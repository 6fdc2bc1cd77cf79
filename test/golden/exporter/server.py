# SPDX-License-Identifier: Apache-2.0
"""A `drystone live --listen` to ask, for tests."""
import http.client
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import served  # noqa: E402


class OverUnix(http.client.HTTPConnection):
    """HTTP over a socket in a folder."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def has_server(tool):
    """Tell whether the command was built with one."""
    done = subprocess.run([tool, "live", "--listen", "x"], capture_output=True, text=True,
                          check=False)
    return "this build has no server" not in done.stderr


class Exporter(served.Served):
    """
    One `drystone live --listen`, from its beginning to its end. `driver` is the tests' NVML and the
    file that tells of its devices; without, none is asked.
    """

    def __init__(self, tool, folder, *words, listen="127.0.0.1:0", driver=None):
        where = ["--listen", listen]
        environment = dict(os.environ)
        if driver:
            environment["LD_LIBRARY_PATH"] = str(driver[0].parent)
            environment["DRY_TEST_NVML"] = str(driver[1])
        else:
            where.append("--no-driver")
        super().__init__(tool, "live", *where, "--folder", folder, *words,
                         environment=environment)
        assert not self.place or self.address == f"http://{self.place}/metrics", self.address

    def connection(self):
        if self.address.startswith("unix:"):
            return OverUnix(self.address[len("unix:"):], timeout=60)
        return super().connection()

    def ask(self, path="/metrics", **words):
        return super().ask(path, **words)
