#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone live --listen` over HTTP: formats, strangers, slow ones, sockets, ends: http_server.py TOOL"""
import concurrent.futures
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pages
import text
from server import Exporter, has_server, served

OPEN = "application/openmetrics-text"
OF_PROMETHEUS = (f"{OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75,"
                 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


def check_formats(server):
    """Accept decides, by its weights; both texts have the same figures."""
    for accept, is_open in (
            (None, False), ("", False), ("*/*", False), ("text/plain", False), (OPEN, True),
            (OF_PROMETHEUS, True), (f"{OPEN}; version=0.0.1", False),
            (f"{OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.4", True),
            (f"{OPEN};q=0.4,text/plain;q=0.5", False), (f"{OPEN};q=0", False),
            (f"{OPEN};q=0.5,*/*;q=0.8", False), (f"text/html, {OPEN.upper()} ; Q=0.1", True),
            (f"{OPEN};q=x", False), (f"{OPEN}x", False), (",;=,;;q", False),
            (f"{OPEN};q=0.300,*/*;q=0.3", True), ("a" * 5000, False)):
        status, told, headers = server.ask(Accept=accept)
        assert status == 200
        expected = f"{OPEN}; version=1.0.0" if is_open else "text/plain; version=0.0.4"
        assert headers["Content-Type"] == f"{expected}; charset=utf-8", (accept, headers)
        assert headers["Vary"] == "Accept" and headers["Cache-Control"] == "no-store"
        samples = text.read(told.decode(), is_open)
        assert text.one(samples, "process_ooms_total", name='"') == 5
        assert text.one(samples, "process_reserved_bytes", name='"') == 9 << 30


def check_paths(server):
    assert server.ask("/metrics?name=x")[0] == 200
    status, page, headers = server.ask("/")
    assert status == 200 and b'href="/metrics"' in page and "text/html" in headers["Content-Type"]
    for path in ("/metrics/", "/Metrics", "//metrics", "/../etc/passwd", "/%2e%2e/etc/passwd",
                 "/favicon.ico", "/x" * 2000):
        assert server.ask(path)[0] == 404, path
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        status, _, headers = server.ask(method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    status, told, headers = server.ask(method="HEAD")
    assert (status, told) == (200, b"") and int(headers["Content-Length"]) > 1000


def check_hosts(server):
    """A web page's name for this address is refused; numbers and localhost are not."""
    for host in (f"127.0.0.1:{server.port}", "127.0.0.1", "localhost:9", "LocalHost", "[::1]:80",
                 "10.1.2.3:9432"):
        assert server.ask(Host=host)[0] == 200, host
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example",
                 "localhost.evil.example", "127.1", "[::1", "[]:80", "a@127.0.0.1", "x" * 300,
                 "127.0.0.1:x", ":80", "127.0.0.1:999999"):
        assert server.ask(Host=host)[0] in (400, 403), host


def check_malformed(server):
    head = f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    for request in (b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                    b"\r\n" * 1000, b"G" * 100000, head + b"X: y\r\n" * 200000,
                    head + b"X: " + b"y" * 500000, b"GET /" + b"z" * 60000 + b" HTTP/1.1\r\n\r\n",
                    head + b"Content-Length: 1000000000000\r\n\r\n" + b"x" * 65536,
                    head + b"Content-Length: -1\r\n\r\nx",
                    head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
                    head + b"Accept: " + b",;q=" * 3000 + b"\r\n\r\n"):
        reply = server.talk(request)
        assert not reply or reply.split()[1][:1] in (b"2", b"4", b"5"), reply[:80]
        assert server.ask()[0] == 200


def check_slow(server):
    served.check_slow_senders(server, [b"GET /metrics HTTP/1.1\r\nX: "], server.ask)


def check_many(server):
    """Many at once get all of the text, and cost one look each half a second."""
    before = text.one(text.read(server.ask()[1].decode(), False), "exporter_looks_total")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2 * served.PLACES) as pool:
        replies = list(pool.map(lambda _: server.ask(), range(6 * served.PLACES)))
    after = text.one(text.read(server.ask()[1].decode(), False), "exporter_looks_total")
    assert all(status == 200 and told.endswith(b"\n") for status, told, _ in replies)
    assert after - before <= 2 + 2 * (time.monotonic() - began), (before, after)


def check_new_pages(server, folder):
    """Pages that come, change and end do so in the next text; ends are counted."""
    page = pages.Page(folder, b"second")
    page.add(reserved=1, ooms=2)
    wait_for(server, [1], "process_reserved_bytes", name="second")
    page.update(0, reserved=2, ooms=6)
    wait_for(server, [2], "process_reserved_bytes", name="second")
    page.close_and_leave()
    told = wait_for(server, [], "process_reserved_bytes", name="second")
    assert text.one(told, "exporter_ended_ooms_total") == 6


def wait_for(server, values, *words, **labels):
    """Ask until these are a sample's values, for minutes at most."""
    end = time.monotonic() + 300
    while True:
        told = ask(server)
        if text.find(told, *words, **labels) == values:
            return told
        assert time.monotonic() < end, told
        time.sleep(0.05)


def ask(server):
    return text.read(server.ask()[1].decode(), False)


def check_trend(server, page):
    """Looks between the questions know how a program grows: one that does has a time left."""
    assert text.find(ask(server), "process_time_to_limit_seconds") == []
    rate, begin, is_near = 8 << 20, time.monotonic(), False
    while not is_near:
        reserved = (9 << 30) + int((time.monotonic() - begin) * rate)
        assert reserved < 10 << 30, left
        page.update(0, reserved=reserved)
        time.sleep(0.05)
        left = text.find(ask(server), "process_time_to_limit_seconds", name='"')
        room = (10 << 30) - reserved
        is_near = bool(left) and 0.3 * room / rate < left[0] < 4 * room / rate
    page.update(0, reserved=9 << 30)


def check_unix(tool, folder, work):
    """A socket of mode 0660; one that was left behind is taken, others are not."""
    path = work / "socket"
    with Exporter(tool, folder, listen=f"unix:{path}") as server:
        assert server.address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert server.ask(Host="anything")[0] == 200
        second = subprocess.run([tool, "live", "--listen", f"unix:{path}"], capture_output=True,
                                check=False)
        assert second.returncode == 4 and b"in use" in second.stderr, second
        server.process.kill()
        server.process.wait()
    assert path.is_socket()
    with Exporter(tool, folder, listen=f"unix:{path}") as server:
        assert server.ask()[0] == 200
        server.end()
    assert not path.exists()
    with Exporter(tool, folder, listen=f"unix:{path}") as server:
        path.unlink()
        path.write_text("another's")
        server.end()
    assert path.read_text() == "another's"
    for wrong, code in ((path, 4), (work / "absent" / "socket", 4), ("x" * 108, 2), ("", 2)):
        done = subprocess.run([tool, "live", "--listen", f"unix:{wrong}"], capture_output=True,
                              check=False)
        assert done.returncode == code and done.stderr, done


def check_addresses(tool, folder):
    """Only what was named is listened on; what is no address is refused."""
    for word in ("", ":", ":9432", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                 "127.0.0.1:-1", "127.1:9432", "[::1]", "[]:1", "[::1:1", "::1:1", "]:1",
                 "example.com:9432", "[127.0.0.1]:1", "127.0.0.1:+1", "1" * 300 + ":1"):
        done = subprocess.run([tool, "live", "--listen", word], capture_output=True,
                              check=False)
        assert done.returncode == 2 and b"expected ADDRESS:PORT" in done.stderr, done
    with Exporter(tool, folder) as server:
        done = subprocess.run([tool, "live", "--listen", server.place], capture_output=True,
                              check=False)
        assert done.returncode == 4 and b"cannot listen" in done.stderr, done
        served.check_loopback_only(server)
        server.end(signal.SIGINT)
    with Exporter(tool, folder, listen="0.0.0.0:0") as server:
        server.place = f"127.0.0.1:{server.port}"
        assert server.ask(Host="node-7.cluster.example")[0] == 200
        server.end()
    if os.path.exists("/proc/net/if_inet6") and "00000001 01" in open("/proc/net/if_inet6").read():
        with Exporter(tool, folder, listen="[::1]:0") as server:
            assert server.place.startswith("[::1]:") and server.ask()[0] == 200
            assert server.ask(Host="evil.example")[0] == 403
            server.end()


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    if not has_server(tool):
        print("SKIPPED: libmicrohttpd was not found: there is no server to try")
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp(
        dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    folder = work / "pages"
    folder.mkdir()
    page = pages.Page(folder, b'"')
    page.add(reserved=9 << 30, limit=10 << 30, ooms=5)
    try:
        with Exporter(tool, folder) as server:
            assert server.ask()[0] == 200
            files = len(server.open_files())
            for check in (check_formats, check_paths, check_hosts, check_malformed, check_slow,
                          check_many):
                check(server)
            check_new_pages(server, folder)
            check_trend(server, page)
            served.check_files_kept(server, files + 1)
            server.end()
        check_unix(tool, folder, work)
        check_addresses(tool, folder)
    finally:
        shutil.rmtree(work)


main()
