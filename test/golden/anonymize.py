#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Anonymise real snapshots and let Python judge the results: anonymize.py TOOL

Every pickle under $DRY_TEST_TRACES/pytorch, and one made here, goes through `drystone
anonymize`. What comes out is compared with what went in, object by object, by rules that
are written here a second time; words of every string that changed are searched for in the
bytes; and `drystone info` and `drystone replay` must see the same in both. Nothing of the
recordings is printed.
"""
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

WORD = re.compile(rb"[A-Za-z0-9_]{4,}")
ALIAS = re.compile(r"\b[fdms]_[0-9a-f]{8,64}\b")
# What the JSON says of the file, its path, or of the time of day.
OTHERWISE = {"file", "file_bytes", "read_bytes", "first_us", "last_us", "protocol"}


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return Safe(file).load()


def odd_snapshot():
    def frame(name, filename, **more):
        return dict(name=name, filename=filename, line=12, **more)

    event = {"action": "alloc", "addr": 512, "size": 512, "stream": 0, "time_us": 70_000_000}
    stacks = [
        [frame("secretive", "C:\\Users\\secretive\\torch\\secretive.py")],
        [frame("f\u00e9lin", "/home/f\u00e9lin/\U0001f600/site-packages/mine/x.pyc")],
        [frame("ok", "/v/site-packages/torch/_ops.py", fx_node_name="hidden_node")],
        [frame("mine::kernel(at::Tensor)", "??"), frame("at::empty(long)", "??")],
    ]
    events = [dict(event, frames=stack, compile_context="1/0", unheard={"deep": ["down", i]})
              for i, stack in enumerate(stacks)]
    return {
        "segments": [], "device_traces": [events, []],
        "external_annotations": [
            {"name": "private step", "stage": "START", "device": 0, "time_us": 69_999_990}],
        "process": {"argv": ["python", "--token", "hunter22"], "pid": 123456, "load": 0.125},
    }


class Judge:
    """Where two snapshots differ, and which strings became which."""

    def __init__(self):
        self.forth, self.back, self.kept = {}, {}, set()
        self.shift = None

    def text(self, where, old, new):
        part = "path" if where == "filename" else "name" if where == "name" else "text"
        if old == new:
            self.kept.add(old)
            return
        assert ALIAS.search(new), f"{where}: no alias"
        assert self.forth.setdefault((part, old), new) == new, f"{where}: equal, then not"
        assert self.back.setdefault((part, new), old) == old, f"{where}: two became one"

    def time(self, old, new):
        self.shift = self.shift if self.shift is not None else old - new
        assert old - new == self.shift, "times are shifted by different amounts"

    def pair(self, stack, where, old, new):
        if isinstance(old, (bool, float, type(None))) or type(old) is not type(new):
            known = type(old) is type(new) and where is not None
            assert known or {type(old), type(new)} == {list, tuple}, f"{where}: a type"
            if not isinstance(old, (list, tuple)):
                assert old == new or where == "?", f"{where}: a value"
                return
        if isinstance(old, str):
            self.text(where, old, new)
        elif where == "time_us":
            self.time(old, new)
        elif isinstance(old, int):
            assert old == new or where == "?", f"{where}: a number"
        elif isinstance(old, dict):
            self.dict(stack, where, old, new)
        else:
            assert len(old) == len(new), f"{where}: a length"
            stack.extend((where, x, y) for x, y in zip(old, new))

    def frame(self, old, new):
        """Only PyTorch's own names, and what every Python has, may stay."""
        name, path = old.get("name", ""), old.get("filename", "")
        is_torch = re.search(r"[/\\](site|dist)-packages[/\\]torch[/\\]", path)
        is_public = is_torch or "::" in name or name[:1] in ("", "<", "?")
        assert is_public or new["name"] != name, "a name stayed"
        assert path in ("", "??") or path[:1] == "<" or new["filename"] != path, "a path stayed"

    def dict(self, stack, where, old, new):
        if "name" in old and "filename" in old and where != "?":
            self.frame(old, new)
        assert len(old) == len(new), f"{where}: other keys"
        known = [key for key in old if key in new]
        self.kept.update(key for key in known if isinstance(key, str))
        for key in known:
            stack.append((where if where == "?" else key, old[key], new[key]))
        for x, y in zip((k for k in old if k not in new), (k for k in new if k not in old)):
            self.text("key", x, y)
            stack.append(("?", old[x], new[y]))

    def compare(self, old, new):
        stack = [("snapshot", old, new)]
        while stack:
            self.pair(stack, *stack.pop())


def modern(snapshot):
    """The shape of 2023, and lists of pool ids, are written as PyTorch does today."""
    snapshot = dict(snapshot) if isinstance(snapshot, dict) else {"segments": snapshot}
    segments = []
    for segment in snapshot["segments"]:
        blocks, address = [], segment["address"]
        for block in segment["blocks"]:
            block = dict(block)
            history = block.pop("history", [])
            block.setdefault("address", address)
            address += block["size"]
            if history:
                block.setdefault("requested_size", history[0]["real_size"])
                if "frames" in history[0]:
                    block.setdefault("frames", history[0]["frames"])
            if block["state"] == "active_awaiting_free":
                block["state"] = "active_pending_free"
            blocks.append(block)
        segments.append(dict(segment, blocks=blocks))
    return dict(snapshot, segments=segments)


def words_of(texts):
    return {word for text in texts for word in WORD.findall(text.encode())}


def strings_of(snapshot):
    found, stack = set(), [snapshot]
    while stack:
        thing = stack.pop()
        if isinstance(thing, str):
            found.add(thing)
        elif isinstance(thing, dict):
            stack.extend(thing.keys())
            stack.extend(thing.values())
        elif isinstance(thing, (list, tuple)):
            stack.extend(thing)
    return found


def search(judge, new, data):
    """Words of what changed: not in the bytes, and shorter ones not in the strings."""
    kept = judge.kept | {ALIAS.sub(" ", text) for text in strings_of(new)
                         if "site-packages" in text or "dist-packages" in text}
    allowed = b"\n".join(text.encode() for text in kept)
    hidden = {word for word in words_of(old for _, old in judge.forth) if word not in allowed}
    texts = "\n".join(ALIAS.sub(" ", text) for text in strings_of(new)).encode()
    for word in hidden:
        assert len(word) < 8 or word not in data, "a hidden word is in the bytes"
        assert word not in texts, "a hidden word is in a string"
    return len(hidden)


def facts(tool, command, path):
    done = subprocess.run([tool, command, "--json", path], capture_output=True, text=True)
    assert done.returncode in (0, 1, 3), done.stderr

    def clean(thing):
        if isinstance(thing, dict):
            return {k: clean(v) for k, v in thing.items() if k not in OTHERWISE | {"unknown"}}
        return [clean(item) for item in thing] if isinstance(thing, list) else thing

    return done.returncode, clean(json.loads(done.stdout)) if done.stdout else None


def check(tool, path, output):
    done = subprocess.run([tool, "anonymize", path, "-o", output, "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verified"] and report["objection"] is None
    old, new = load(path), load(output)
    judge = Judge()
    judge.compare(modern(old), modern(new))
    hidden = search(judge, new, pathlib.Path(output).read_bytes())
    for command in ("info", "replay"):
        assert facts(tool, command, path) == facts(tool, command, output), command
    print(f"{pathlib.Path(path).name}: {len(judge.forth)} strings replaced, {hidden} words "
          f"searched for, {len(judge.kept)} strings kept")
    assert hidden > 0


def main():
    tool = sys.argv[1]
    folder = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "out.pickle")
        path = os.path.join(scratch, "odd.pickle")
        with open(path, "wb") as file:
            pickle.dump(odd_snapshot(), file, 4)
        check(tool, path, output)
        data = pathlib.Path(output).read_bytes()
        for word in (b"secretive", b"hunter22", b"hidden_node", b"private", "f\u00e9lin".encode(),
                     b"unheard", b"process", b"mine"):
            assert word not in data, word
        assert b"site-packages/torch/_ops.py" in data and b"at::empty(long)" in data
        assert sorted(os.listdir(scratch)) == ["odd.pickle", "out.pickle"]
        if not folder.is_dir():
            print(f"SKIPPED: no recordings in {folder}; set DRY_TEST_TRACES")
            sys.exit(77)
        for path in sorted(folder.glob("*.pickle")):
            check(tool, str(path), output)


main()
