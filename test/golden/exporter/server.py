# SPDX-License-Identifier: Apache-2.0
"""A `drystone exporter` to ask, for tests."""
import http.client
import os
import signal
import socket
import subprocess


class OverUnix(http.client.HTTPConnection):
    """HTTP over a socket in a folder."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


def has_server(tool):
    """Tell whether the command was built with one."""
    done = subprocess.run([tool, "exporter", "--listen", "x"], capture_output=True, text=True,
                          check=False)
    return "this build has no server" not in done.stderr


class Exporter:
    """
    One `drystone exporter`, from its beginning to its end. `driver` is the tests' NVML and the
    file that tells of its devices; without, none is asked.
    """

    def __init__(self, tool, folder, *words, listen="127.0.0.1:0", driver=None):
        where = ["--listen", listen] if listen else []
        environment = dict(os.environ)
        if driver:
            environment["LD_LIBRARY_PATH"] = str(driver[0].parent)
            environment["DRY_TEST_NVML"] = str(driver[1])
        else:
            where.append("--no-driver")
        self.process = subprocess.Popen(
            [tool, "exporter", *where, "--folder", folder, *map(str, words)],
            stdout=subprocess.PIPE, text=True, env=environment)
        self.address = self.process.stdout.readline().strip()
        if self.address.startswith("http://"):
            assert self.address.endswith("/metrics"), self.address
            self.place = self.address[len("http://"):-len("/metrics")]
            self.port = int(self.place.rsplit(":", 1)[1])

    def connection(self):
        if self.address.startswith("unix:"):
            return OverUnix(self.address[len("unix:"):], timeout=60)
        return http.client.HTTPConnection(self.place, timeout=60)

    def ask(self, path="/metrics", method="GET", body=None, **headers):
        """Ask for a path; the status, the body, and the headers of the reply."""
        connection = self.connection()
        connection.putrequest(method, path, skip_host="Host" in headers,
                              skip_accept_encoding=True)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, data, reply.headers

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        assert self.process.wait(timeout=30) == 0, self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
