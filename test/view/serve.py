#!/usr/bin/env python3
"""The server of the views answers its page and nobody else: serve.py TOOL MAKE_CASES

Asked are the questions of the page, keys that are no question (2,000, from a seed), other
hosts, other origins, other tokens, climbing paths, other methods, bodies, heads without an
end, heads that are too long, many at once, and a slow one beside a fast one. A browser that
is opened gets no argument with the token.
"""
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from view_server import Server, served

SEED = 20261127


def check_answers(server, tool, path):
    status, page, headers = server.ask(f"/{server.token}/")
    assert status == 200 and b'id="answers"></script>' in page
    assert headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
    assert "Access-Control-Allow-Origin" not in headers
    status, about, _ = server.answer("about")
    device = json.loads(about)["files"][0]["devices"][0]
    assert json.loads(about)["kind"] == "serve"
    for command in ("explain", "info", "steps", "sweep"):
        status, told, headers = server.answer(f"0/{command}")
        printed = subprocess.run([tool, command, "--json", path], capture_output=True,
                                 check=False).stdout
        assert status == 200 and json.loads(told) == json.loads(printed), command
    last, deepest = device["moments"] - 1, device["levels"] - 1
    for key in (f"0/0/tile/{deepest}/{(1 << deepest) - 1}", f"0/0/map/{last}",
                f"0/0/owners/{last}", "0/0/events/0", "0/stacks"):
        status, told, _ = server.answer(key)
        assert status == 200 and told[:4] in (b"DSV1", b'{"mo'), (key, status)
    for key in (f"0/0/tile/{deepest + 1}/0", f"0/0/tile/0/1", f"0/0/map/{last + 1}", "1/explain",
                "0/1000/map/0", "0/0/map/00", "0/0/map/", "0/0/map/-1", "0/0/map/1x", "", "0",
                "0/0", "0/demo", "0/explain/", "0/0/map/0/", "0/0/tile/0/0/", "0/0/events/0/",
                "0/0/map/99999999999999999999999"):
        assert server.answer(key)[0] == 404, key


def check_random_keys(server):
    """No key ends the server; what is no question is not found."""
    rng = random.Random(SEED)
    words = ["0", "1", "00", "tile", "map", "owners", "events", "stacks", "explain", "about",
             "-1", "4294967295", "18446744073709551616", "%2e%2e", "..", "%00", "a" * 300, "", "%C3%A9", "%FF"]
    for _ in range(2000):
        key = "/".join(rng.choice(words) for _ in range(rng.randint(1, 5)))
        if key.endswith("explain"):
            continue
        status, _, _ = server.answer(key)
        assert status in (200, 404), (key, status)


def check_arrival(server, own, path):
    """A tab may come to the page from a file; nothing else may come from elsewhere."""
    tab = {"Host": own, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate",
           "Sec_Fetch_Dest": "document"}
    assert server.ask(path, **tab)[0] == 200
    for wrong in ({"Sec_Fetch_Dest": "iframe"}, {"Sec_Fetch_Dest": "empty"}, {"Sec_Fetch_Mode": "no-cors"},
                  {"Sec_Fetch_Mode": "cors"}, {"Sec_Fetch_Site": "same-site"}, {"Origin": "null"},
                  {"Host": "evil.example"}, {"Sec_Fetch_Mode": None}, {"Sec_Fetch_Dest": None}):
        assert server.ask(path, **tab | wrong)[0] == 403, wrong
    assert server.ask(f"{path}a/about", **tab)[0] == 403
    assert server.ask(f"/{'0' * 32}/", **tab)[0] == 403


def check_strangers(server):
    own, path = f"127.0.0.1:{server.port}", f"/{server.token}/"
    assert server.ask(path, Host=own, Origin=f"http://{own}")[0] == 200
    assert server.ask(path, Host=f"localhost:{server.port}")[0] == 200
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"},
                    {"Host": "127.0.0.1"}, {"Host": own, "Origin": "http://evil.example"},
                    {"Host": own, "Origin": "null"}, {"Host": own, "Origin": f"https://{own}"},
                    {"Host": own, "Sec_Fetch_Site": "cross-site"},
                    {"Host": own, "Sec_Fetch_Site": "same-site"}):
        assert server.ask(path, **headers)[0] == 403, headers
    check_arrival(server, own, path)
    for wrong in ("/", "/favicon.ico", f"/{'0' * 32}/", f"/{server.token[:-1]}/",
                  f"/{server.token}", f"/{server.token}/../", f"/{server.token}/a/../../etc/passwd",
                  f"/{server.token}/%2e%2e/%2e%2e/etc/passwd", f"//{server.token}/"):
        assert server.ask(wrong)[0] == 404, wrong
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert server.ask(path, method=method)[0] == 405, method
    assert server.ask(path, method="POST", body=b"x" * 100)[0] == 405
    assert server.ask(path, method="HEAD")[:2] == (200, b"")


def check_malformed(server):
    """Bytes that are no request get a refusal or an end, and others are served meanwhile."""
    bad = [b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000,
           b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"G" * 100000,
           b"GET / HTTP/1.1\r\nX: " + b"y" * 200000 + b"\r\n\r\n",
           b"GET /" + b"z" * 60000 + b" HTTP/1.1\r\n\r\n"]
    for request in bad:
        reply = server.talk(request)
        assert reply == b"" or reply.split()[1][:1] == b"4" or b"505" in reply, reply
        assert server.answer("about")[0] == 200


def check_many(server):
    """Many at once, beside ones that never end their head."""
    slow = [server.connect() for _ in range(20)]
    for peer in slow:
        peer.sendall(b"GET / HTTP/1.1\r\nHost:")
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(server.answer("0/0/tile/0/0")[0]))
               for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 30, statuses
    for peer in slow:
        peer.close()


def check_commands_beside(server):
    """A command that takes replays holds nobody up; five at once are one too many."""
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(server.answer("0/sweep")[0]))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    assert server.answer("about")[0] == 200
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 503} and 200 in statuses, statuses


def check_gone_client(server):
    """A client that goes away while its command runs costs nothing."""
    for _ in range(3):
        with server.connect() as peer:
            head = f"GET /{server.token}/a/0/sweep HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
            peer.sendall(head.encode() + b"\r\n\r\n")
    assert server.answer("about")[0] == 200


def browse(tool, file, folder, runtime, limit=None, path=None):
    """What a browser is told, and what the tool says; with `limit`, no byte can be written to a file."""
    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    told = folder / "told"
    told.unlink(missing_ok=True)
    environment = os.environ | {"DISPLAY": ":0", "PATH": path or f"{folder}:/usr/bin:/bin", "TOLD": str(told),
                                "XDG_RUNTIME_DIR": str(runtime)}
    with subprocess.Popen([tool, "view", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment, preexec_fn=prepare) as process:
        address = process.stdout.readline().strip()
        until = time.monotonic() + (10 if path is None and limit is None and runtime.exists() else 0.5)
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.02)
        lines = told.read_text().splitlines() if told.exists() else None
        left = list(runtime.iterdir()) if runtime.exists() else []
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait(timeout=30) == 0, said
    assert not runtime.exists() or not list(runtime.iterdir())
    return address, lines, left, said


def check_browser(tool, file, folder):
    """The browser is given a file of the user's alone, and no argument that others could read tells the token."""
    fake, runtime = folder / "xdg-open", folder / "runtime"
    fake.write_text('#!/bin/sh\n{ echo "$#"; echo "$1"; stat -c %a "$1" "${1%/*}"; cat "$1"; } > "$TOLD.new"\n'
                    'mv "$TOLD.new" "$TOLD"\n')
    fake.chmod(0o755)
    runtime.mkdir(mode=0o700)
    address, (count, path, mode, folder_mode, *text), left, said = browse(tool, file, folder, runtime)
    token = address.split("/")[3]
    assert (count, mode, folder_mode, said) == ("1", "600", "700", ""), (count, mode, folder_mode, said)
    assert token not in path and path.startswith(f"{runtime}/") and len(left) == 1
    assert f"url={address}" in "".join(text) and f'href="{address}"' in "".join(text)
    for words in ({"runtime": folder / "absent"}, {"runtime": folder / ("long" * 60)}, {"limit": 0},
                  {"path": str(folder / "absent")}):
        address, lines, left, said = browse(tool, file, folder, **({"runtime": runtime} | words))
        assert address.startswith("http://127.0.0.1:") and not left, (words, left)
        assert lines is None and said.count("no browser is opened: ") == 1, (words, said)


def main():
    tool, make_cases = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        cases = pathlib.Path(name) / "cases"
        subprocess.run([make_cases, cases], check=True, stdout=subprocess.DEVNULL)
        files = sorted(cases.glob("*.pickle"))
        busy = socket.create_server(("127.0.0.1", 0))
        done = subprocess.run([tool, "view", "--port", str(busy.getsockname()[1]), files[0]],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 4, done
        if "this build has no server" in done.stderr:
            print("SKIPPED: libmicrohttpd was not found: there is no server to try")
            sys.exit(77)
        assert "cannot listen" in done.stderr, done
        with Server(tool, files[3]) as server:
            check_answers(server, tool, files[3])
            for check in (check_random_keys, check_strangers, check_malformed, check_many,
                          check_commands_beside, check_gone_client, served.check_loopback_only):
                check(server)
            server.end()
        check_browser(pathlib.Path(tool).resolve(), files[3], pathlib.Path(name))
        with Server(tool, *files[:2]) as both:
            assert both.token != server.token
            assert len(json.loads(both.answer("about")[1])["files"]) == 2
            both.end(signal.SIGINT)
        for words, status in (([], 2), (["-"], 2), (["--port", "0", files[0]], 2),
                              ([cases / "absent"], 3)):
            assert subprocess.run([tool, "view", *words], capture_output=True,
                                  check=False).returncode == status, words


main()
