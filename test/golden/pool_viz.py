#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots of pools, seen by PyTorch's own module and by the tool:
pool_viz.py POOL_SNAPSHOT DRYSTONE

CPython reads the file, its sums are the pool's, and its opcodes are those of
pytorch.org/memory_viz. The commands read it, and a record of the torch placement replays
exactly. PyTorch's torch/cuda/_memory_viz.py, of an installed torch or below $DRY_TEST_TORCH
(a folder that holds `torch/`), makes all its texts and pages of it; where there is none, that
part is skipped and the test with it.
"""
import json
import os
import pathlib
import pickle
import pickletools
import re
import subprocess
import sys
import tempfile

# What torch/utils/viz/MemoryViz.js unpickles.
VIEWER = set(
    "PROTO FRAME STOP MARK APPEND APPENDS BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE "
    "BININT BININT1 BININT2 LONG1 BINFLOAT NONE NEWTRUE NEWFALSE SHORT_BINUNICODE "
    "BINUNICODE EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST EMPTY_TUPLE TUPLE TUPLE1 "
    "TUPLE2 TUPLE3 BYTEARRAY8".split()
)
POOLS = [("torch", ""), ("torch", "expandable_segments:True"),
         ("torch", "max_split_size_mb:25"),
         ("torch", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"),
         ("torch", "large_segment_size_mb:40"), ("paged", ""), ("paged", "remap:False")]
COMMANDS = [["info"], ["top", "--free"], ["explain"], ["top"], ["replay", "--json"]]


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def find_module():
    for folder in [os.environ.get("DRY_TEST_TORCH")] + sys.path:
        if folder:
            path = pathlib.Path(folder) / "torch" / "cuda" / "_memory_viz.py"
            if path.is_file():
                return path
    return None


def load_module(path):
    names = {"__name__": "memory_viz", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def check_sums(snapshot, sums):
    segments = snapshot["segments"]
    for key, wanted in (("total_size", "reserved"), ("allocated_size", "allocated"),
                        ("active_size", "active"), ("requested_size", "requested")):
        # Pages that a pool keeps in stock lie in no segment.
        total = sum(segment[key] for segment in segments)
        assert total == sums[wanted] or (key == "total_size" and total < sums[wanted]), key
    for segment in segments:
        blocks = segment["blocks"]
        assert segment["address"] == blocks[0]["address"]
        assert sum(block["size"] for block in blocks) == segment["total_size"]
        assert all(block["state"] in ("active_allocated", "active_pending_free", "inactive")
                   for block in blocks)
    (trace,) = snapshot["device_traces"]
    assert len(trace) == sums["entries"]
    assert any(entry.get("frames") for entry in trace)


def check_settings(settings, placement, conf):
    if placement == "torch":
        assert settings["PYTORCH_CUDA_ALLOC_CONF"] == conf
        assert len(settings["roundup_power2_divisions"]) == 16
        assert settings["expandable_segments"] == ("expandable" in conf)
        assert settings["max_split_size"] == (25 << 20 if "max_split" in conf else -1)
    else:
        assert settings["drystone_placement"] == placement
        assert settings["drystone_conf"] == conf
        assert "PYTORCH_CUDA_ALLOC_CONF" not in settings


def check_module(viz, snapshot):
    """All that `python -m torch.cuda._memory_viz` can do, but the page of the flames."""
    plain = {"format_flamegraph": lambda lines: lines}
    lines = viz["segments"](snapshot, **plain).splitlines()
    used = sum(int(line.rsplit(" ", 1)[1]) for line in lines
               if ";active" in line and "<gaps>" not in line)
    assert used == sum(segment["requested_size"] for segment in snapshot["segments"])
    assert viz["memory"](snapshot, **plain)
    assert "only_before" in viz["compare"](snapshot["segments"], [], **plain)
    text = viz["segsum"](snapshot)
    assert f"segments: {len(snapshot['segments'])}" in text
    (trace,) = snapshot["device_traces"]
    text = viz["trace"](snapshot)
    assert f"{len(trace)} entries" in text
    assert text.count("free completed for") == sum(
        entry["action"] == "free_completed" for entry in trace)
    for page in (viz["trace_plot"](snapshot), viz["segment_plot"](snapshot)):
        assert re.search(r'"base64": "[A-Za-z0-9+/]+=*"', page)


def check_commands(drystone, path, is_torch):
    for command in COMMANDS:
        ran = subprocess.run([drystone, *command, path], capture_output=True, text=True)
        assert ran.returncode in (0, 1), f"{command}: {ran.stderr}"
        assert "\x1b" not in ran.stdout
        assert "outside of every known segment" not in " ".join(ran.stdout.split())
    if is_torch:
        check = json.loads(ran.stdout)["self_check"]
        assert check["possible"] and check["exact"], check
        assert check["allocs_matched"] == check["allocs"] > 0, check


def main():
    program, drystone = sys.argv[1:3]
    path = find_module()
    viz = load_module(path) if path else None
    with tempfile.TemporaryDirectory() as scratch:
        for seed, (placement, conf) in enumerate(POOLS, 1):
            output = os.path.join(scratch, f"{seed}.pickle")
            ran = subprocess.run([program, placement, conf, str(seed), output], check=True,
                                 capture_output=True, text=True)
            sums = {key: int(value) for key, value in
                    (line.split() for line in ran.stdout.splitlines())}
            data = pathlib.Path(output).read_bytes()
            unknown = {op.name for op, _, _ in pickletools.genops(data)} - VIEWER
            assert not unknown, unknown
            with open(output, "rb") as file:
                snapshot = Safe(file).load()
            check_sums(snapshot, sums)
            check_settings(snapshot["allocator_settings"], placement, conf)
            check_commands(drystone, output, placement == "torch")
            if viz:
                check_module(viz, snapshot)
            print(f"ok {placement} {conf or 'default'}: {sums['entries']} entries")
    if not viz:
        print("SKIPPED: no torch/cuda/_memory_viz.py; install torch or set DRY_TEST_TORCH")
        sys.exit(77)


main()
