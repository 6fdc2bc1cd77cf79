#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No text of a recording, of a file's name or of the command line reaches a terminal as a
control, as a mark of direction, or unseen: hostile_text.py TOOL"""
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unicodedata

BAD = "\u200b\u061c\u202e\ufeff\u00ad"
MIB = 1 << 20


def frames(line):
    return [{"name": f"f{BAD}\x1b[31m{line}", "filename": f"/x/m{BAD}.py", "line": line}]


def made():
    events = []

    def add(action, address, size, **more):
        events.append({"action": action, "addr": address, "size": size, "stream": 0,
                       "time_us": len(events), "frames": frames(size // MIB),
                       "user_metadata": BAD, "compile_context": BAD, **more})
    for _ in range(8):
        for i in range(1, 5):
            add("alloc", i * 64 * MIB, i * MIB)
        for i in range(1, 5):
            add("free_requested", i * 64 * MIB, i * MIB)
            add("free_completed", i * 64 * MIB, i * MIB)
    add("oom", 0, 64 * MIB, device_free=MIB)
    return {"segments": [], "device_traces": [events],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": f"x{BAD}:1", BAD: BAD},
            "external_annotations": [{"stage": "START", "name": BAD, "device": 0, "time_us": 1}]}


def unseen(text):
    return [c for c in text if c not in "\n\t" and
            unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def main():
    tool = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        name, log = f"run{BAD}.pickle", f"log{BAD}.txt"
        (folder / name).write_bytes(pickle.dumps(made(), 4))
        (folder / log).write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
                                  f"GiB. GPU 0 has a total capacity of 4.00 GiB{BAD} of which 1 B "
                                  f"is free. Process 1{BAD} has 3 GiB memory in use.\n")
        commands = [[*words, name] for words in (
            ["info"], ["explain"], ["top"], ["top", "--stacks"], ["top", "--free"],
            ["steps"], ["replay"], ["replay", "--decisions"], ["sweep"], ["diff", name],
            ["replay", "--conf", BAD], ["replay", "--capacity", f"4{BAD}"], ["top", f"--{BAD}"],
            ["explain", "--fail-if", f"{BAD} > 1"], ["anonymize", "-o", f"a{BAD}"],
            ["export", "-f", BAD, "-o", BAD], ["view", "-o", f"v{BAD}.html"])]
        commands += [["fleet", "."], ["info", f"none{BAD}"], ["explain", log], [BAD],
                     ["dry-run", f"none{BAD}"]]
        for words in commands:
            done = subprocess.run([tool, *words], cwd=folder, capture_output=True, check=False)
            printed = (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
            assert printed.strip() and not unseen(printed), (words, ascii(unseen(printed)), printed)
        for path in folder.glob("*.html"):
            assert not unseen(path.read_text()), path
    print(f"safe: {len(commands)} commands")


main()
