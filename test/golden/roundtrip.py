#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read and write real snapshots; Python must see equal objects: roundtrip.py REWRITE

Every pickle under $DRY_TEST_TRACES/pytorch, and a few made here for what real ones lack, is
read and written by the program REWRITE. Both sides are loaded by an unpickler that refuses
every global and compared after two stated changes: lists of pool ids become tuples, and the
shape of 2023 (blocks with `history`) becomes the modern one. The output may hold only
opcodes that PyTorch's viewer knows, and no batch of more than 1,000.
"""
import os
import pathlib
import pickle
import pickletools
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
BATCH_MAX = 1000
DIS_BYTES_MAX = 500_000


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return Safe(file).load()


def check_opcodes(data):
    """The opcodes are the viewer's; no APPENDS takes more than a batch."""
    marks = []  # things pushed since each open MARK
    for op, _, _ in pickletools.genops(data):
        assert op.name in VIEWER, f"opcode {op.name}"
        if op.name == "MARK":
            marks.append(0)
            continue
        if op.name in ("APPENDS", "SETITEMS"):
            batch = marks.pop()
            assert batch <= BATCH_MAX * (2 if op.name == "SETITEMS" else 1), batch
            continue
        if marks:
            marks[-1] += len(op.stack_after) - len(op.stack_before)


def modern_block(block, address):
    """A block of 2023 had its stack in a `history`, the newest use first."""
    block = dict(block)
    history = block.pop("history", [])
    block.setdefault("address", address)
    if history:
        block.setdefault("requested_size", history[0]["real_size"])
        if "frames" in history[0]:
            block.setdefault("frames", history[0]["frames"])
    if block["state"] == "active_awaiting_free":
        block["state"] = "active_pending_free"
    return block


def modern_segment(segment):
    segment = dict(segment)
    if "segment_pool_id" in segment:
        segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
    address, blocks = segment["address"], []
    for block in segment["blocks"]:
        blocks.append(modern_block(block, address))
        address += block["size"]
    segment["blocks"] = blocks
    return segment


def modern_event(event):
    if "pool_id" not in event:
        return event
    return dict(event, pool_id=tuple(event["pool_id"]))


def modern(snapshot):
    if isinstance(snapshot, list):
        return [modern_segment(segment) for segment in snapshot]
    new = dict(snapshot)
    for key in ("segments", "host_segments"):
        if key in new:
            new[key] = [modern_segment(segment) for segment in new[key]]
    for key in ("device_traces",):
        if key in new:
            new[key] = [[modern_event(event) for event in trace] for trace in new[key]]
    return new


def differ(a, b, where="snapshot"):
    """Where two objects first differ, without showing what is in them; None if nowhere."""
    stack = [(a, b, where)]
    while stack:
        a, b, where = stack.pop()
        if type(a) is not type(b):
            return f"{where}: {type(a).__name__} became {type(b).__name__}"
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return f"{where}: keys {sorted(a.keys() ^ b.keys())}"
            stack.extend((a[key], b[key], f"{where}.{key}") for key in a)
        elif isinstance(a, (list, tuple)):
            if len(a) != len(b):
                return f"{where}: {len(a)} elements became {len(b)}"
            if a != b:
                stack.extend((x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b)))
        elif a != b:
            return f"{where}: a {type(a).__name__}"
    return None


def odd_snapshots():
    """What the real ones lack: unknown keys and actions, hosts, gaps, extremes."""
    frame = {"name": "f\u00e9\U0001f600", "filename": "m.py", "line": 7, "fx_node_op": "call"}
    block = {
        "address": 0x7F00_0000_0000, "size": 512, "requested_size": 100,
        "state": "active_allocated", "frames": [frame], "tag": {"a": [1, (2, 3), None, 0.5]},
    }
    segment = {
        "device": 1, "address": 0x7F00_0000_0000, "total_size": 1024,
        "allocated_size": 512, "active_size": 512, "requested_size": 100, "stream": 2**63 + 5,
        "segment_type": "small", "segment_pool_id": (0, 3), "is_expandable": True,
        "frames": [], "registration_counter": -1,
        "blocks": [block, dict(block, address=0x7F00_0000_0200, state="inactive")],
    }
    event = {
        "action": "alloc", "addr": 0x7F00_0000_0000, "size": 100, "stream": 0,
        "time_us": -(2**40), "compile_context": "N/A", "user_metadata": "m" * 300,
        "pool_id": (0, 3), "frames": [frame] * 2500, "unheard": 2**62,
    }
    events = [
        event,
        {"action": "oom", "device_free": 2**33, "size": 2**64 - 1, "stream": 0},
        {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 1},
        {"action": "levitate", "addr": 1, "size": 2, "stream": 3, "time_us": 4, "frames": []},
        dict(event, forward_frames=[frame], user_metadata="x" * 70000),
        dict(event, frames=[], forward_frames=[
            '  File "train.py", line 82, in step\n    loss = model(x)\n',
            "  [Previous line repeated 3 more times]\n", "\tno frame \u00e9", ""]),
    ]
    yield "odd", {
        "segments": [segment], "device_traces": [[], events, []],
        "external_annotations": [
            {"name": "step", "stage": "START", "device": 1, "time_us": 9, "more": "yes"}],
        "future": {"key": [True, False, -1, 2**40, "text"]},
    }
    yield "long", {
        "segments": [], "device_traces": [[dict(event, time_us=i, frames=[frame] * (i % 3))
                                           for i in range(5001)]],
    }
    yield "list", [segment]
    yield "empty", {"segments": [], "device_traces": []}


def check(rewrite, path, output):
    subprocess.run([rewrite, path, output], check=True)
    data = pathlib.Path(output).read_bytes()
    check_opcodes(data)
    if len(data) < DIS_BYTES_MAX:  # slow, but it also follows the stack and the memo
        with open(os.devnull, "w") as nowhere:
            pickletools.dis(data, out=nowhere)
    where = differ(modern(load(path)), load(output))
    before, after = os.path.getsize(path), os.path.getsize(output)
    print(f"{'not equal: ' + where if where else 'equal'}: {pathlib.Path(path).name}, "
          f"{before} -> {after} bytes")
    return where is None


def main():
    rewrite = sys.argv[1]
    folder = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "out.pickle")
        for name, snapshot in odd_snapshots():
            for protocol in (2, 4, 5):
                path = os.path.join(scratch, f"{name}-{protocol}.pickle")
                with open(path, "wb") as file:
                    pickle.dump(snapshot, file, protocol)
                good &= check(rewrite, path, output)
        if not folder.is_dir():
            print(f"SKIPPED: no recordings in {folder}; set DRY_TEST_TRACES")
            sys.exit(77 if good else 1)
        for path in sorted(folder.glob("*.pickle")):
            good &= check(rewrite, str(path), output)
    sys.exit(0 if good else 1)


main()
