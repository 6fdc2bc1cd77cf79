#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone mcp`, spoken to by hand: talk.py TOOL

What a tool answers is what the command prints. What no client would write, the protocol's
codes refuse, and the server goes on. No file outside the folders is read.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from server import META, VERSION, Server, data

tool = pathlib.Path(sys.argv[1]).resolve()
reading = {"list_files", "info", "explain", "explain_message", "top", "steps",
           "diff", "replay", "sweep"}


def printed(*words):
    done = subprocess.run([tool, *map(str, words)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    return done.stdout


def code_of(answer):
    assert "result" not in answer, answer
    return answer["error"]["code"]


def check_handshakes(folder):
    s = Server(tool, folder)
    found = s.ask("server/discover")["result"]
    assert found["supportedVersions"][0] == VERSION and found["resultType"] == "complete"
    assert found["capabilities"] == {"tools": {}} and found["ttlMs"] >= 0
    assert code_of(s.ask("tools/list", meta=None)) == -32602  # nobody has initialized
    old = {**META, "io.modelcontextprotocol/protocolVersion": "1900-01-01"}
    refused = s.ask("tools/list", meta=old)
    assert code_of(refused) == -32022
    assert refused["error"]["data"]["requested"] == "1900-01-01"
    assert VERSION in refused["error"]["data"]["supported"]
    assert code_of(s.ask("tools/list", meta={list(META)[0]: VERSION})) == -32602
    assert code_of(s.ask("tools/list", meta={**META, list(META)[0]: 7})) == -32602
    assert code_of(s.ask("ping")) == -32601  # of the older revisions only
    for wanted, given in (("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"),
                          ("2024-11-05", "2025-11-25"), ("zzz", "2025-11-25")):
        answer = s.ask("initialize", meta=None, protocolVersion=wanted, capabilities={})
        assert answer["result"]["protocolVersion"] == given, answer
    assert s.ask("ping", meta=None)["result"] == {}
    listed = s.ask("tools/list", meta=None)["result"]
    assert "resultType" not in listed
    assert {t["name"] for t in listed["tools"]} == reading
    assert code_of(s.ask("initialize", meta=None)) == -32602
    assert s.end() == 0


def check_list(folder):
    s = Server(tool, folder)
    tools = s.ask("tools/list")["result"]["tools"]
    assert s.longest <= 10000, f"tools/list takes {s.longest} bytes"
    for t in tools:
        schema = t["inputSchema"]
        assert schema["type"] == "object" and not schema["additionalProperties"], t
        assert t["annotations"]["readOnlyHint"] and len(t["description"]) > 20, t
        assert set(schema.get("required", [])) <= set(schema["properties"]), t
    assert code_of(s.ask("tools/list", cursor="x")) == -32602
    assert s.end() == 0


def check_answers(folder):
    s = Server(tool, folder)
    trace, demo = folder / "small.trace", folder / "demo.pickle"
    for name, words in (("info", ()), ("explain", ()), ("top", ()),
                        ("steps", ()), ("sweep", ())):
        text, is_error = s.call(name, file="demo.pickle")
        assert not is_error and text == printed(name, demo), (name, text)
    text, _ = s.call("top", file=str(demo), by="category", rows=3)
    assert text == printed("top", demo, "--by", "category", "--rows", "3")
    text, _ = s.call("top", file="demo.pickle", free=True)
    assert text == printed("top", demo, "--free")
    text, _ = s.call("explain", file="demo.pickle", gpu_total="15GiB", at="peak")
    assert text == printed("explain", demo, "--gpu-total", "15GiB", "--at", "peak")
    text, _ = s.call("replay", file="small.trace", find_capacity=True,
                     conf=["", "expandable_segments:True"])
    assert text == printed("replay", trace, "--find-capacity", "-c", "", "-c",
                           "expandable_segments:True")
    text, _ = s.call("diff", files=["before.pickle", "after.pickle"])
    assert text == printed("diff", folder / "before.pickle", folder / "after.pickle")
    text, _ = s.call("explain_message", text="CUDA error: out of memory")
    assert text == printed("explain", "--message", "CUDA error: out of memory")
    text, _ = s.call("explain_message", file="train.log")
    assert "line 2, byte 7" in text, text
    text, _ = s.call("info", file="demo.pickle", format="json")
    assert json.loads(text) == json.loads(printed("info", demo, "--json"))
    text, _ = s.call("list_files")
    assert "demo.pickle" in text and ".hidden" not in text and "notes.md" not in text
    assert s.end() == 0


def check_pages(folder):
    s = Server(tool, folder)
    demo = folder / "demo.pickle"
    for name, words in (("explain", ()), ("steps", ())):
        whole = printed(name, demo)
        text, count, longest = s.pages(name, file="demo.pickle", max_bytes=2000)
        assert text == whole and longest <= 2000, (name, longest)
    small = {"file": "demo.pickle", "format": "json", "max_bytes": 2000}
    text, count, longest = s.pages("top", rows=0, **small)
    assert json.loads(text) == json.loads(printed("top", demo, "--json"))
    assert count > 1 and longest <= 2000, (count, longest)
    wide, count, longest = s.pages("top", file="demo.pickle", format="json", rows=0,
                                   max_bytes=1000000)
    assert wide == text and count == 1
    page, _ = s.call("top", rows=0, **small)
    cursor = page.split()[-1].rstrip("]")
    _, is_error = s.call("top", rows=1, cursor=cursor, **small)
    assert is_error  # of another answer
    for bad in ("", "x", "-1", "7", cursor + "0", "99999999-" + cursor.split("-")[1]):
        assert s.call("top", rows=0, cursor=bad, **small)[1], bad
    assert s.end() == 0


def check_folders(folder, outside):
    s = Server(tool, "sub", "sub2", cwd=folder)
    (folder / "sub" / "link.trace").symlink_to(outside / "secret.trace")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "sub" / "down.trace").symlink_to(folder / "sub2" / "there.trace")
    (folder / "sub-beside").mkdir()
    shutil.copy(folder / "small.trace", folder / "sub-beside" / "a.trace")
    os.mkfifo(folder / "sub" / "pipe.trace")
    for name in (str(outside / "secret.trace"), "link.trace", "../small.trace",
                 "up/small.trace", "../sub-beside/a.trace", "pipe.trace", "", ".", "..",
                 "/etc/passwd", "--json", "nothing.trace", "x" * 5000, "sub/there.trace",
                 str(folder / "sub-beside" / "a.trace")):
        text, is_error = s.call("info", file=name)
        assert is_error and "no such file below" in text, (name, text)
        assert "secret" in name or "secret" not in text
    for name in ("here.trace", "there.trace", "down.trace", "../sub/here.trace",
                 str(folder / "sub" / "here.trace")):
        assert not s.call("info", file=name)[1], name
    text, _ = s.call("list_files")
    assert "here.trace" in text and "link.trace" not in text and "small" not in text
    assert s.end() == 0
    for words, code in ((["mcp"], 2), (["mcp", "nowhere"], 3), (["mcp", tool], 3)):
        done = subprocess.run([tool, *words], cwd=folder, capture_output=True)
        assert done.returncode == code and done.stdout == b"" and done.stderr, words


def check_arguments(folder):
    s = Server(tool, folder)
    for arguments in ({}, {"file": 7}, {"file": "small.trace", "rows": "x"},
                      {"file": "small.trace", "decisions": "out"},
                      {"file": "small.trace", "json": True},
                      {"file": "small.trace", "format": "xml"},
                      {"file": "small.trace", "max_bytes": 10},
                      {"file": "small.trace", "max_bytes": 10**9},
                      {"file": "small.trace", "rows": -1},
                      {"file": "small.trace", "cursor": 1},
                      {"file": "small.trace", "at": "--help"},
                      {"file": "small.trace", "stacks": "yes"}):
        text, is_error = s.call("top", **arguments)
        assert is_error and text, arguments
    for name in ("replay", "sweep"):
        text, is_error = s.call(name, file="small.trace", conf="x")
        assert is_error, text
    for arguments in ({}, {"text": "x", "file": "train.log"}, {"text": 1}):
        assert s.call("explain_message", **arguments)[1], arguments
    for arguments in ({}, {"files": []}, {"files": "a"}, {"files": [1]}):
        assert s.call("diff", **arguments)[1], arguments
    text, is_error = s.call("replay", file="small.trace", conf=["x"] * 500)
    assert is_error and "more than" in text
    assert code_of(s.ask("tools/call", name="rm", arguments={})) == -32602
    assert code_of(s.ask("tools/call", name="info", arguments=[])) == -32602
    assert code_of(s.ask("tools/call")) == -32602
    text, is_error = s.call("explain", file="evil.pickle")
    assert is_error and "names code" in text
    assert not s.call("info", file="small.trace")[1]
    assert s.end() == 0


def check_hostile_lines(folder):
    s = Server(tool, folder)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    for line, code in ((b"", -32700), (b"{", -32700), (b"\xff\xfe", -32700),
                       (b"null", -32700), (b"[" * 100000, -32700), (b"{}", -32600),
                       (b"[]", -32600), (json.dumps([request]).encode(), -32600),
                       (b'{"id":1,"id":2}', -32700),
                       ({**request, "jsonrpc": "1.0"}, -32600),
                       ({**request, "id": None}, -32600),
                       ({**request, "id": 1.5}, -32600),
                       ({**request, "id": "x" * 1000}, -32600),
                       ({**request, "method": 1}, -32600),
                       ({**request, "params": []}, -32602),
                       ({**request, "params": {}}, -32602),
                       ({**request, "method": "resources/list"}, -32601),
                       ({**request, "method": "\u0000"}, -32700),
                       (b"x" * (3 << 20), -32600)):
        answer = s.say(line)
        assert code_of(answer) == code, (line[:80], answer)
    for line in (b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
                 b'{"jsonrpc":"2.0","method":"tools/call","params":[]}',
                 b'{"jsonrpc":"2.0","id":1,"result":{}}',
                 b'{"jsonrpc":"2.0","id":1,"error":{}}'):
        s.write(line)  # none is answered: the next answer is that of the next request
    assert s.ask("tools/list")["result"]
    assert s.say({**request, "id": "words"})["id"] == "words"
    assert s.longest <= 10000
    s.write(b'{"jsonrpc":"2.0","id":9,"method":"tools')  # cut: no line feed follows
    s.process.stdin.close()
    assert s.process.wait(timeout=60) == 0


def check_ids(folder):
    """A request has its id back, whatever is wrong with the rest; no id is guessed."""
    s = Server(tool, folder)
    begin = b'{"jsonrpc": "2.0", "method": "tools/call", "params": '
    ids = ((b"7", 7), (b'"a\\",}"', 'a",}'), (b'"\\u0041"', "A"), (b" -1 ", -1),
           (b'"' + b"x" * 128 + b'"', "x" * 128), (b'"' + b"x" * 129 + b'"', None), (b"1.5", None),
           (b"null", None), (b"[7]", None), (b"7 8", None), (b"99999999999999999999", None),
           (b'7, "id": 8', None))
    wrongs = (b'{"rows": 99999999999999999999}', b'{"rows": -1e999}', b'{"id": 1, "id": 2}',
              b'"\xff"', b'"\\u0000"', b"[" * 3000 + b"]" * 3000, b"{'}", b"x", b"",
              b'"' + b'\\"' * (1 << 20) + b'"')
    for id, told in ids:
        for wrong in wrongs:
            for line in (begin + wrong + b', "id":' + id + b"}",
                         b'{"id":' + id + b"," + begin[1:] + wrong + b"}"):
                answer = s.say(line)
                assert answer["id"] == told and "error" in answer, (line[:200], answer)
    for line in (b'{"id": 7', b'{"id": "7', b'{"params": {"id": 7}', b'[{"id": 7}',
                 b'{"a": "\"id\": 7, "}x', b'{"id": 7}{"id": 8}', b'}"id": 7, {'):
        assert s.say(line)["id"] is None, line
    assert s.ask("tools/list")["result"]
    assert s.end() == 0


def check_limits(folder):
    """A call that takes too long or too much ends alone."""
    s = Server(tool, "--memory", "64MiB", "--seconds", "1", folder)
    with (folder / "many.trace").open("w") as out:
        for i in range(400000):
            out.write(f"a {i} {512 * (i % 999 + 1)} 0 {i}\n")
    text, is_error = s.call("sweep", file="many.trace")
    assert is_error and ("memory" in text or "longer" in text), text
    assert not s.call("info", file="small.trace")[1]
    assert s.end() == 0


with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:
    folder, outside = pathlib.Path(name).resolve(), pathlib.Path(other).resolve()
    for path in data.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    subprocess.run([tool, "demo", "--capacity", "24GiB", "--output", folder / "demo.pickle"], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "train.log").write_text("step 7\nCUDA error: out of memory\n")
    (folder / "notes.md").write_text("")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.trace").write_text("")
    for part, file in (("sub", "here.trace"), ("sub2", "there.trace")):
        (folder / part).mkdir()
        shutil.copy(folder / "small.trace", folder / part / file)
    shutil.copy(folder / "small.trace", outside / "secret.trace")
    check_handshakes(folder)
    check_list(folder)
    check_answers(folder)
    check_pages(folder)
    check_arguments(folder)
    check_hostile_lines(folder)
    check_ids(folder)
    check_folders(folder, outside)
    check_limits(folder)
