#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read real snapshots twice, by the library and by CPython: pickle_read_compare.py DUMP_TRACE

Every pickle under $DRY_TEST_TRACES/pytorch is read as it is, written again by Python in the
protocols 2 to 5, and written the way PyTorch's C++ code does. The program DUMP_TRACE must
print of each what this script prints of the objects that CPython's unpickler makes.
"""
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zlib

import cpp_pickle


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def crc_text(text):
    return "-" if text is None else f"{zlib.crc32(text.encode()):08x}"


def line_of(frame):
    """Frames without source have -1, unsigned: no line, and kept among the unknown keys."""
    return frame["line"] if 0 <= frame["line"] < 2**32 else 0


class Printer:
    """The lines of dump_trace.c."""

    def __init__(self, device_traces):
        self.stacks = {}
        self.device_traces = device_traces

    def stack(self, frames):
        if frames is None:
            return "-"
        known = self.stacks.get(id(frames))
        if known is None:
            text = "".join(f"{f['name']}|{f['filename']}|{line_of(f)}\n" for f in frames)
            known = (f"{zlib.crc32(text.encode()):08x}", frames)
            self.stacks[id(frames)] = known
        return known[0]

    @staticmethod
    def pool(record, key):
        return "{},{}".format(*record[key]) if key in record else "-"

    def event(self, device, e):
        addr = e.get("device_free" if e["action"] == "oom" else "addr", "-")
        return " ".join(map(str, (
            "event", device, e["action"], addr, e["size"], e["stream"],
            self.pool(e, "pool_id"), e.get("time_us", "-"), self.stack(e.get("frames")),
            crc_text(e.get("compile_context")), crc_text(e.get("user_metadata")))))

    def segment(self, s):
        yield " ".join(map(str, (
            "segment", s["device"], s["address"], s["total_size"], s["allocated_size"],
            s["active_size"], s.get("requested_size", 0), s["segment_type"], s["stream"],
            self.pool(s, "segment_pool_id"),
            int(s["is_expandable"]) if "is_expandable" in s else "-",
            self.stack(s.get("frames")))))
        address = s["address"]
        for b in s["blocks"]:
            newest = b["history"][0] if b.get("history") else {}
            state = b["state"].replace("awaiting", "pending")
            yield " ".join(map(str, (
                "block", b.get("address", address), b["size"],
                b.get("requested_size", newest.get("real_size", 0)), state,
                self.stack(b.get("frames", newest.get("frames"))))))
            address += b["size"]

    def settings(self, s):
        line = ["settings", crc_text(s["PYTORCH_CUDA_ALLOC_CONF"]), s["max_split_size"],
                f"{s['garbage_collection_threshold']:.17g}", int(s["expandable_segments"])]
        return " ".join(map(str, line + list(s["roundup_power2_divisions"].values())))

    def lines(self, snapshot):
        for device, trace in enumerate(self.device_traces):
            for event in trace:
                yield self.event(device, event)
        for segment in sorted(snapshot["segments"], key=lambda s: s["device"]):
            yield from self.segment(segment)
        for a in snapshot.get("external_annotations", ()):
            yield (f"annotation {a['device']} {a['time_us']} {crc_text(a['name'])} "
                   f"{crc_text(a['stage'])}")
        if "allocator_settings" in snapshot:
            yield self.settings(snapshot["allocator_settings"])


def expect(snapshot):
    return list(Printer(snapshot["device_traces"]).lines(snapshot))


def check(program, name, data, expected, scratch):
    """Compare; what differs is named by its kind and number, without its contents."""
    path = os.path.join(scratch, "in.pickle")
    pathlib.Path(path).write_bytes(data)
    done = subprocess.run([program, path], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"not read: {name}: {done.stderr.strip()}")
        return False
    got = done.stdout.splitlines()
    for i, (a, b) in enumerate(zip(got, expected)):
        if a != b:
            fields = [k for k, (x, y) in enumerate(zip(a.split(), b.split())) if x != y]
            print(f"not equal: {name}: line {i}, {b.split()[0]}, fields {fields}")
            return False
    if len(got) != len(expected):
        print(f"not equal: {name}: {len(got)} lines, expected {len(expected)}")
        return False
    print(f"equal: {name}, {len(got)} lines")
    return True


def variants(data, snapshot):
    yield "as recorded", data
    for protocol in (2, 3, 4, 5):
        yield f"protocol {protocol}", pickle.dumps(snapshot, protocol)
    cpp = io.BytesIO()
    cpp_pickle.dump(snapshot, cpp)
    yield "C++ style", cpp.getvalue()


def main():
    program = sys.argv[1]
    folder = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    if not folder.is_dir():
        print(f"SKIPPED: no recordings in {folder}; set DRY_TEST_TRACES")
        sys.exit(77)
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(folder.glob("*.pickle")):
            data = path.read_bytes()
            snapshot = Safe(io.BytesIO(data)).load()
            expected = expect(snapshot)
            for name, variant in variants(data, snapshot):
                good &= check(program, f"{path.name}, {name}", variant, expected, scratch)
    sys.exit(0 if good else 1)


main()
