#!/usr/bin/env python3
"""The server of the views holds out against whoever reaches its port: hostile.py TOOL MAKE_CASES

Beside serve.py: requests cut at every byte, heads and bodies without an end, a byte now and then
on every place there is, readers that do not read, 64 at once, other names for this host, numbers
that overflow, words that climb. After each the server answers as before, holds no more memory
than a few answers, and keeps no file open.
"""
import concurrent.futures
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

from view_server import Server, served

SEED = 20261127
MEMORY_MORE = 96 << 20


def head(server, path, *lines):
    own = f"Host: 127.0.0.1:{server.port}"
    return "\r\n".join([f"GET {path} HTTP/1.1", own, *lines, "", ""]).encode("latin-1")


def talk_to_all(server, requests):
    """Replies to many, half as many at once as there are places: some wait until silence ends."""
    with concurrent.futures.ThreadPoolExecutor(served.PLACES // 2) as pool:
        return list(pool.map(server.talk, requests))


def status_of(reply):
    return int(reply.split()[1]) if reply else None


def check_cut_requests(server):
    """A request that ends after any of its bytes gets no answer, and the whole one does."""
    whole = head(server, f"/{server.token}/a/about", "Connection: close", "X-Other: 1")
    parts = [whole[:end] for end in range(len(whole))]
    for part, reply in zip(parts, talk_to_all(server, parts)):
        assert status_of(reply) in (None, 400), part
    assert status_of(server.talk(whole)) == 200


def check_changed_requests(server):
    """A request with some bytes changed is answered or refused, and does no harm."""
    rng = random.Random(SEED)
    whole = head(server, f"/{server.token}/a/0/0/tile/0/0", "Connection: close", "Accept: */*")
    requests = []
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice(b"\0\r\n :/%\x7f\xff0Aa")
        requests.append(bytes(changed))
    for request, reply in zip(requests, talk_to_all(server, requests)):
        status = status_of(reply)
        assert status in (None, 200) or 400 <= status <= 505, (status, request)


def check_huge(server):
    """Heads and bodies without an end are cut off, and not kept."""
    path = f"/{server.token}/a/about"
    for request in (head(server, path)[:-2] + b"X: y\r\n" * 200000,
                    head(server, path)[:-2] + b"X" * 1000000,
                    head(server, path, "Cookie: " + "c" * 500000),
                    head(server, path + "?" + "q" * 500000),
                    head(server, path + "?" + "q=1&" * 100000),
                    head(server, f"/{server.token}/" + "../" * 100000)):
        assert status_of(server.talk(request)) in (None, 400, 404, 413, 414, 431)
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for begin, body in ((head(server, path, "Content-Length: 1000000000000"), b"x" * 65536),
                        (head(server, path, "Transfer-Encoding: chunked"), chunk),
                        (head(server, path, "Content-Length: 99999999999999999999999"), b"x"),
                        (head(server, path, "Content-Length: -1"), b"x"),
                        (head(server, path, "Transfer-Encoding: chunked"), b"fffffffffffffffff\r\n")):
        for verb in (b"GET", b"POST"):
            reply = server.talk(begin.replace(b"GET", verb, 1) + body * 200)
            assert status_of(reply) in (None, 400, 405, 413, 501), (begin, reply[:80])


def check_slow_senders(server):
    """Slow ones are before a head, in one, behind one, and in a body."""
    begins = (b"", b"GET / HTTP/1.1\r\nX: ", head(server, f"/{server.token}/")[:-2],
              head(server, f"/{server.token}/", "Transfer-Encoding: chunked") + b"1;")
    served.check_slow_senders(server, begins, lambda: server.answer("about"))


def check_slow_readers(server):
    """Who asks for much and takes nothing has a place until it is silent for too long."""
    request = head(server, f"/{server.token}/")
    peers = []
    for _ in range(served.PLACES):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", server.port))
        peer.sendall(request * 20)
        peers.append(peer)
    assert server.answer("about")[0] == 200
    for peer in peers:
        peer.close()


def check_many(server):
    """As many at once as there are places, and as many again, get each their own answer."""
    keys = ["0/0/tile/0/0", "about", "0/stacks", "0/0/map/1", "0/0/owners/1", "0/0/events/0"]
    expected = {key: server.answer(key)[:2] for key in keys}
    with concurrent.futures.ThreadPoolExecutor(2 * served.PLACES) as pool:
        asked = [keys[i % len(keys)] for i in range(6 * served.PLACES)]
        for key, told in zip(asked, pool.map(server.answer, asked)):
            assert told[:2] == expected[key], key
    one = server.talk(head(server, f"/{server.token}/a/about") * 50)
    assert one.count(b"HTTP/1.1 200") == 50


def check_names(server):
    """No other name of this host is served, nor two of them, nor none."""
    port, path = server.port, f"/{server.token}/a/about"
    own = f"127.0.0.1:{port}"
    hosts = ("", "localhost", f"LOCALHOST:{port}", f"127.1:{port}", f"0.0.0.0:{port}",
             f"[::1]:{port}", f"127.0.0.1:{port}.", f"a@127.0.0.1:{port}", f"127.0.0.1:0{port}",
             f"127.0.0.1:{port},evil.example", f"evil.example#127.0.0.1:{port}",
             f"127.0.0.1.evil.example:{port}", f"127.0.0.1:{port}/")
    origins = ("", "null", f"http://{own}/", f"http://{own}.evil.example", f"HTTP://{own}",
               f"http://a@{own}", f"http://evil.example,http://{own}", f"file://{own}")
    wrong = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for host in hosts]
    wrong += [f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode() for lines in
              ("", "Host : x\r\n", f"Host: evil.example\r\nHost: {own}\r\n")]
    wrong += [f"GET {path} HTTP/1.0\r\n\r\n".encode()]
    wrong += [head(server, path, f"Origin: {origin}") for origin in origins]
    for request, reply in zip(wrong, talk_to_all(server, wrong)):
        assert status_of(reply) in (400, 403), (request, reply[:60])
    targets = [head(server, target) for target in
               (f"http://evil.example{path}", f"//evil.example{path}", "*", path[1:])]
    for request, reply in zip(targets, talk_to_all(server, targets)):
        assert status_of(reply) in (400, 404), (request, reply[:60])


def check_paths(server):
    """Paths that climb, other tokens and none find nothing, and are told nothing apart."""
    token = server.token
    refusals = set()
    for path in ("/", "/a/about", f"/{token}", f"/{token.upper()}/a/about", f"/{token}x/a/about",
                 f"/{token[1:]}/a/about", f"/{'f' * 32}/a/about", f"/%00{token}/a/about",
                 "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", f"/x/../{token}/a/about",
                 f"/{token}/../../etc/passwd", f"/{token}/a/..%2f..%2fetc/passwd",
                 f"/{token}/a//etc/passwd", f"/{token}/a/0/%2fetc%2fpasswd", f"/{token}\\..\\a",
                 f"/{token}/a/../a/about", f"/{token}/./", f"/{token}/A/about",
                 f"/{token}/a/about%00x", f"/{token}/a/about/", f"/{token}/a/%61bout%20"):
        status, body, _ = server.ask(path)
        if path != f"/{token}/a/about%00x":  # a text ends at its zero, so that is "about"
            assert status == 404, (path, status)
            refusals.add((status, body))
    assert len(refusals) == 2, refusals  # of a path, and of a key


def check_numbers(server):
    """A number that overflows is no number, in any place of a key."""
    wrong = [str(2**k + add) for k in (31, 32, 63, 64, 65, 127, 128) for add in (-1, 0, 1)]
    wrong += ["9" * 400, "-0", "-1", "+1", " 1", "1 ", "0x1", "1e1", "1.0", "01", "%31%20", "0" * 40]
    for number in wrong:
        word = number.replace(" ", "%20").replace("+", "%2B")
        for key in (f"{word}/explain", f"{word}/stacks", f"{word}/0/map/0", f"0/{word}/map/0",
                    f"0/0/tile/{word}/0", f"0/0/tile/0/{word}", f"0/0/tile/{word}/{word}",
                    f"0/0/map/{word}", f"0/0/owners/{word}", f"0/0/events/{word}"):
            status, body, _ = server.answer(key)
            assert status == 404, (key, status, body[:80])


def check_settings(server):
    """Settings that cannot be replayed are not found; none ends the server."""
    for conf in ("", "x", "max_split_size_mb", "max_split_size_mb:", "max_split_size_mb:-1",
                 "max_split_size_mb:99999999999999999999", "expandable_segments:True" + ",a:b" * 50,
                 "%00", "%0a", "%FF%FE", "..%2f..", "a" * 600, "roundup_power2_divisions:%5B256:1",
                 "max_split_size_mb:20%00", "garbage_collection_threshold:nan"):
        assert server.answer(f"0/0/reserved/{conf}")[0] in (200, 404), conf
    assert server.answer("0/0/reserved/max_split_size_mb:20")[0] == 200


def resident_bytes(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_kept(server, files, memory):
    """What came and went left nothing behind, once the silent ones have been ended."""
    served.check_files_kept(server, files)
    assert resident_bytes(server) < memory + MEMORY_MORE, (resident_bytes(server), memory)


def main():
    tool, make_cases = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        cases = pathlib.Path(name) / "cases"
        subprocess.run([make_cases, cases], check=True, stdout=subprocess.DEVNULL)
        path = sorted(cases.glob("*.pickle"))[3]
        busy = socket.create_server(("127.0.0.1", 0))
        done = subprocess.run([tool, "view", "--port", str(busy.getsockname()[1]), path],
                              capture_output=True, text=True, check=False)
        busy.close()
        if "this build has no server" in done.stderr:
            print("SKIPPED: libmicrohttpd was not found: there is no server to try")
            sys.exit(77)
        # A sanitizer keeps what was freed, up to 256 MiB, which would look as if it were kept.
        sanitizer = [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=8"]
        os.environ["ASAN_OPTIONS"] = ":".join(filter(None, sanitizer))
        with Server(tool, path) as server:
            assert server.answer("0/0/tile/0/0")[0] == 200
            files, memory = len(server.open_files()), resident_bytes(server)
            for check in (check_cut_requests, check_changed_requests, check_huge,
                          check_slow_senders, check_slow_readers, check_many, check_names,
                          check_paths, check_numbers, check_settings):
                began = time.monotonic()
                check(server)
                assert server.answer("about")[0] == 200, check
                print(f"{check.__name__} {time.monotonic() - began:.1f} s", flush=True)
            check_kept(server, files, memory)
            server.end()


main()
