# SPDX-License-Identifier: Apache-2.0
"""A server of the tool's, `drystone view` or `drystone live --listen`, to ask and to be rude to."""
import http.client
import os
import signal
import socket
import subprocess
import threading
import time

PLACES = 64       # connections that a server has at once
HEAD_SECONDS = 5  # that it gives a head


def without_display():
    """The environment in which no browser is opened."""
    return {name: value for name, value in os.environ.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY")}


class Served:
    """One server, from its beginning to its end. It prints its address first."""

    def __init__(self, *words, environment=None):
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.address = self.process.stdout.readline().strip()
        self.place = self.port = None
        if self.address.startswith("http://"):
            self.place = self.address[len("http://"):].split("/")[0]
            self.port = int(self.place.rsplit(":", 1)[1])

    def connection(self):
        return http.client.HTTPConnection(self.place, timeout=60)

    def ask(self, path, method="GET", body=None, **headers):
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

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def talk(self, request):
        """Send bytes, and take what comes until the end; b"" if the other side cut it off."""
        taken = b""
        with self.connect() as peer:
            try:
                peer.sendall(request)
                peer.shutdown(socket.SHUT_WR)
                while more := peer.recv(65536):
                    taken += more
            except OSError:
                pass
        return taken

    def open_files(self):
        return os.listdir(f"/proc/{self.process.pid}/fd")

    def heard_on(self):
        """The addresses that this port is listened on, as /proc/net/tcp writes them."""
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split()[1:4] for line in table][1:]
        return {row[0] for row in rows
                if row[2] == "0A" and int(row[0].split(":")[1], 16) == self.port}

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


def check_loopback_only(server):
    """No other address of this machine is listened on."""
    assert server.heard_on() == {f"0100007F:{server.port:04X}"}, server.heard_on()


def check_slow_senders(server, begins, ask):
    """A byte a second on every place there is, after `begins`, keeps nobody out for long."""
    peers = [server.connect() for _ in range(PLACES)]
    is_over = threading.Event()

    def drip():
        while not is_over.wait(1):
            for peer in peers:
                try:
                    peer.sendall(b"x")
                except OSError:
                    pass

    for i, peer in enumerate(peers):
        peer.sendall(begins[i % len(begins)])
    sender = threading.Thread(target=drip)
    sender.start()
    began = time.monotonic()
    try:
        assert ask()[0] == 200
        took = time.monotonic() - began
    finally:
        is_over.set()
        sender.join()
    for peer in peers:
        peer.close()
    assert took < 4 * HEAD_SECONDS, took


def check_files_kept(server, most):
    """No connection is kept once all are over."""
    for _ in range(200):
        if len(server.open_files()) <= most:
            return
        time.sleep(0.1)
    raise AssertionError(server.open_files())
