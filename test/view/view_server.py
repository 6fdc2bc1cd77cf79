# SPDX-License-Identifier: Apache-2.0
"""A `drystone serve` to ask, for tests and benchmarks."""
import http.client
import subprocess


class Server:
    """One `drystone serve`, from its beginning to its end."""

    def __init__(self, tool, *words):
        self.process = subprocess.Popen([tool, "serve", *map(str, words)],
                                        stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and address.endswith("/"), address
        self.port = int(address.split(":")[2].split("/")[0])
        self.token = address.split("/")[3]

    def ask(self, path, method="GET", body=None, **headers):
        """Ask for a path; the status, the body, and the headers of the reply."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in names,
                              skip_accept_encoding=True)
        for name, value in names.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, data, reply.headers

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.kill()
        self.process.wait()

    def answer(self, key):
        return self.ask(f"/{self.token}/a/{key}")

    def end(self, number):
        self.process.send_signal(number)
        assert self.process.wait(timeout=30) == 0, self.process.returncode
