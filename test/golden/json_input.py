#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A snapshot as JSON, plain, in gzip, behind a byte order mark, in the page that draws it, gives the
same trace as its pickle: json_input.py SAME

The program SAME opens two files as the tool does and compares what it read.
"""
import base64
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile


PICKLE_BYTES_MAX = 600_000  # JSON writes every shared stack anew: tens of times more


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def made():
    frame = {"name": "f\u00e9\U0001f600", "filename": "m.py", "line": 7}
    events = [
        {"action": "alloc", "addr": 2**47, "size": 100 + i, "stream": 0, "time_us": 2**50 + i,
         "user_metadata": "line\nbreak \"quoted\" \u0001", "frames": [frame] * (i % 5),
         "new": [None, True, -0.5, {"deep": [-1, 2**40]}]}
        for i in range(3000)
    ]
    return {"segments": [], "device_traces": [[], events],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.5,
                                   "expandable_segments": False}}


def check(same, snapshot, scratch, name):
    original, text = scratch / "a.pickle", scratch / "a.json"
    packed = scratch / "a.json.gz"
    pages = [scratch / "a.html", scratch / "b.html"]
    original.write_bytes(pickle.dumps(snapshot, 4))
    text.write_text(" \n" + json.dumps(snapshot, ensure_ascii=False))
    packed.write_bytes(gzip.compress(json.dumps(snapshot).encode(), 1))
    marked, marked_pickle = scratch / "marked.json.gz", scratch / "marked.pickle"
    marked.write_bytes(gzip.compress(json.dumps(snapshot).encode("utf-8-sig"), 1))
    marked_pickle.write_bytes("\ufeff".encode() + original.read_bytes())
    for page, content in zip(pages, (original.read_bytes() + b"\0\0", text.read_bytes())):
        files = [{"name": "snapshot.pickle", "base64": base64.b64encode(content).decode()}]
        page.write_text(f"\n<!DOCTYPE html>\n<script>\nconst local_files = {json.dumps(files)}\n"
                        "add_local_files(local_files, 'Active Memory Timeline')\n</script>\n")
    for path in (text, packed, marked, marked_pickle, *pages):
        subprocess.run([same, original, path], check=True)
    print(f"same: {name}")


def main():
    same = sys.argv[1]
    folder = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        check(same, made(), scratch, "made")
        if not folder.is_dir():
            print(f"SKIPPED: no recordings in {folder}; set DRY_TEST_TRACES")
            sys.exit(77)
        for path in sorted(folder.glob("*.pickle")):
            if path.stat().st_size > PICKLE_BYTES_MAX:
                continue
            with open(path, "rb") as file:
                snapshot = Safe(file).load()
            check(same, snapshot, scratch, path.name)


main()
