#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every format of `drystone export`, read by others: export.py TOOL MAKE_CASES MAN_PAGE

Python's readers and a decoder of protocol buffers by field numbers read what the tool
writes, and the formats must agree with each other: counters with peaks, tables with rows,
stacks with the state. Read are snapshots made here (hostile ones among them), those of
MAKE_CASES, and every recording under $DRY_TEST_TRACES/pytorch. The queries that the manual
shows are run.
"""
import csv
import io
import json
import os
import pathlib
import pickle
import pickletools
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile

TOOL = str(pathlib.Path(sys.argv[1]).resolve())
csv.field_size_limit(1 << 24)
MIB = 1 << 20
# The 22 opcodes of public snapshots, and those other writers of them use.
OPCODES = set(
    "PROTO FRAME MARK STOP EMPTY_DICT SETITEMS EMPTY_LIST APPEND APPENDS TUPLE2 BININT "
    "BININT1 BININT2 LONG1 BINFLOAT NEWTRUE NEWFALSE SHORT_BINUNICODE BINUNICODE MEMOIZE "
    "BINGET LONG_BINGET "
    "SETITEM NONE EMPTY_TUPLE TUPLE TUPLE1 TUPLE3 LONG4 BINUNICODE8".split())
CURVES = ("reserved", "active", "allocated", "requested")


def export(path, output, *options, code=0, **more):
    done = subprocess.run([TOOL, "export", path, "-o", output, *options],
                          capture_output=True, **more)
    assert done.returncode == code, (path, output, options, done.returncode, done.stderr[:400])
    return done


def strict_json(data):
    def refuse(word):
        raise ValueError(word)

    def unique(pairs):
        assert len(dict(pairs)) == len(pairs), "a key twice"
        return dict(pairs)

    return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=unique)


# --- protocol buffers -----------------------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """A message as {field: [values]}; a value is a number or the bytes of a message."""
    message, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, f"wire type {tag & 7}"
            length, at = varint(data, at)
            value = data[at:at + length]
            assert len(value) == length, "a message is cut"
            at += length
        message.setdefault(tag >> 3, []).append(value)
    return message


def one(message, field, default=None):
    values = message.get(field, [default])
    assert len(values) == 1, f"field {field} {len(values)} times"
    return values[0]


def read_perfetto(data):
    """Tracks by uuid, and events in the order in which a reader sorts them."""
    names, tracks, events = {2: {}, 3: {}, 29: {}}, {}, []
    packets = [fields(packet) for packet in fields(data)[1]]
    assert one(packets[0], 13) == 1 and one(packets[0], 87) == 1
    for number, packet in enumerate(packets):
        assert one(packet, 10) == 1
        interned = fields(one(packet, 12, b""))
        for field, entries in interned.items():
            for entry in map(fields, entries):
                assert one(entry, 1) not in names[field], "an iid twice"
                names[field][one(entry, 1)] = one(entry, 2).decode("utf-8")
        if 60 in packet:
            track = fields(one(packet, 60))
            assert one(track, 1) not in tracks, "a track twice"
            assert 5 not in track or one(track, 5) in tracks
            tracks[one(track, 1)] = {
                "name": one(track, 2).decode("utf-8"), "is_counter": 8 in track,
                "parent": one(track, 5), "process": fields(one(track, 3, b""))}
        if 11 not in packet:
            continue
        event = fields(one(packet, 11))
        found = {"ts": one(packet, 8), "type": one(event, 9), "track": one(event, 11),
                 "value": one(event, 30), "args": {}}
        assert found["track"] in tracks
        if 10 in event:
            found["name"] = names[2][one(event, 10)]
        elif 23 in event:
            found["name"] = one(event, 23).decode("utf-8")
        for argument in map(fields, event.get(4, [])):
            value = [argument[f][0] for f in (3, 6, 7) if f in argument]
            value = value or [names[29][one(argument, 17)]]
            found["args"][names[3][one(argument, 1)]] = value[0]
        events.append((found["ts"], number, found))
    return tracks, [event for _, _, event in sorted(events, key=lambda e: e[:2])]


def check_perfetto(data, whole, notes):
    tracks, events = read_perfetto(data)
    highest, last, depth, slices = {}, {}, {}, 0
    for event in events:
        track = event["track"]
        if event["type"] == 4:
            assert tracks[track]["is_counter"]
            highest[track] = max(highest.get(track, 0), event["value"])
            last[track] = event["value"]
        elif event["type"] == 1:
            depth[track] = depth.get(track, 0) + 1
            assert depth[track] <= (1 if tracks[track]["name"] == "steps" else 64)
            assert event["name"]
            if tracks[track]["name"].startswith("allocations"):
                slices += 1
                assert event["args"]["size"] > 0 and "stream" in event["args"]
        elif event["type"] == 2:
            depth[track] -= 1
            assert depth[track] >= 0, "an end without a beginning"
        else:
            assert event["type"] == 3
    assert not any(depth.values()), "slices stay open"
    processes = {u: t for u, t in tracks.items() if t["parent"] is None}
    assert len(processes) == len(whole["devices"])
    ends = {}
    for device in whole["devices"]:
        uuid = [u for u, t in processes.items() if one(t["process"], 1) == device["device"] + 1]
        for curve in CURVES:
            found = [highest.get(u, 0) for u, t in tracks.items()
                     if t["parent"] == uuid[0] and t["name"] == curve]
            want = min(device["peaks"][curve]["bytes"], 2**63 - 1)
            assert found == [want], (curve, found, want)
            ends[device["device"], curve] = [last[u] for u, t in tracks.items()
                                             if t["parent"] == uuid[0] and t["name"] == curve]
    dropped = sum(int(n.replace(" ", "")) for n in re.findall(r"device \d+: ([\d ]+) of", notes))
    everything = sum(len(device["allocations"]) for device in whole["devices"])
    assert slices + dropped == everything, (slices, dropped, everything)
    return ends


# --- the others -----------------------------------------------------------------------------


def check_folded(data, whole):
    lines = data.decode("utf-8").splitlines()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        assert count.isdigit() and stack and "" not in stack.split(";"), line[:200]
    is_one = len(whole["devices"]) == 1
    for device in whole["devices"]:
        state = device["state"]
        if not state or state["last_event"] is None:  # the end is what the segments say
            continue
        found = sum(int(line.rpartition(" ")[2]) for line in lines
                    if is_one or line.startswith(f"GPU {device['device']};"))
        assert found == state["active"] + state["unplaced"], state["at"]


def check_csv(data, whole):
    rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
    assert data.count(b"\r\n") == len(rows) == data.count(b"\n")
    wanted = [a for d in whole["devices"] for a in d["allocations"]]
    assert len(rows) == len(wanted) + 1
    column = {name: i for i, name in enumerate(rows[0])}
    for row, a in zip(rows[1:], wanted):
        assert len(row) == len(column)
        assert int(row[column["size"]]) == a["size"]
        assert int(row[column["address"]], 16) == a["address"]
        assert row[column["begin_event"]] == ("" if a["begin_event"] is None
                                              else str(a["begin_event"]))
        assert row[column["fate"]] == a["fate"]
        assert not row[column["owner"]].startswith(("=", "+", "-", "@"))


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def check_sqlite(path, whole, queries):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for device in whole["devices"]:
        where = (device["device"],)
        sizes = [s for s, in db.execute(
            "SELECT size FROM allocations WHERE device = ? ORDER BY allocation", where)]
        assert sizes == [signed(a["size"]) for a in device["allocations"]]
        assert db.execute("SELECT count(*) FROM events WHERE device = ?",
                          where).fetchone()[0] == device["event_count"]
        blocks = dict(db.execute(
            "SELECT state, sum(size) FROM blocks WHERE device = ? GROUP BY state", where))
        if device["state"]:
            assert blocks.get("active", 0) == device["state"]["allocated"]
            assert blocks.get("pending", 0) == device["state"]["pending"]
            assert sum(blocks.values()) == device["state"]["reserved"]
    for table, column, of, key in (
            ("allocations", "stack", "stacks", "stack"), ("events", "stack", "stacks", "stack"),
            ("stack_frames", "frame", "frames", "frame"),
            ("stack_frames", "stack", "stacks", "stack")):
        lost = db.execute(f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND "
                          f"{column} NOT IN (SELECT {key} FROM {of})").fetchone()[0]
        assert lost == 0, (table, column, lost)
    found = [len(db.execute(query).fetchall()) for query in queries]
    db.close()
    return found


def check_json(data):
    whole = strict_json(data)
    assert whole["schema"] == "drystone.export/1"
    for stack in whole["stacks"]:
        assert all(0 <= f < len(whole["frames"]) for f in stack)
    for device in whole["devices"]:
        state = device["state"]
        if not state:
            continue
        assert state["reserved"] == state["active"] + state["releasable"] + state["stranded"]
        assert state["active"] == state["allocated"] + state["pending"]
        assert sum(s["size"] for s in state["segments"]) == state["reserved"]
        for segment in state["segments"]:
            at = segment["address"]
            for block in segment["blocks"]:
                assert block["address"] == at, "a gap"
                at += block["size"]
            assert at == segment["address"] + segment["size"]
    return whole


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def check_pickle(data, whole):
    used = {op.name for op, _, _ in pickletools.genops(data)}
    assert used <= OPCODES, used - OPCODES
    snapshot = Safe(io.BytesIO(data)).load()
    if isinstance(snapshot, dict):
        traces = snapshot.get("device_traces", [])
        for device in whole["devices"]:
            events = traces[device["device"]] if device["device"] < len(traces) else []
            assert len(events) == device["event_count"]


def check_file(path, folder, queries, *, is_deep=True):
    def out(name, *options):
        output = os.path.join(folder, name)
        done = export(path, output, *options)
        assert sorted(os.listdir(folder)) == [name], "more than the file itself"
        data = pathlib.Path(output).read_bytes()
        os.unlink(output)
        return data, done.stderr.decode("utf-8")

    whole = check_json(out("o.json")[0])
    data, notes = out("o.pftrace")
    check_perfetto(data, whole, notes)
    check_folded(out("o.folded")[0], whole)
    check_csv(out("o.csv")[0], whole)
    check_pickle(out("o.pickle")[0], whole)
    database = os.path.join(folder, "o.sqlite")
    export(path, database)
    found = check_sqlite(database, whole, queries)
    os.unlink(database)
    if is_deep:
        for at in ("peak", "end"):
            there = check_json(out("o.json", "--at", at)[0])
            check_folded(out("o.folded", "--at", at)[0], there)
        few, notes = out("o.pftrace", "--slices", "3", "--min-size", "1KiB", "--every-point")
        ends = check_perfetto(few, whole, notes)
        for device in there["devices"]:
            for curve in CURVES:
                assert ends[device["device"], curve] == [device["state"][curve]], curve
    return found


# --- snapshots ------------------------------------------------------------------------------


def frame(name, file="/home/u/model.py", line=7):
    return {"name": name, "filename": file, "line": line}


def segment(device, address, size, used, **more):
    blocks = [{"address": address, "size": used, "requested_size": used - 8,
               "state": "active_allocated", "frames": [frame("keep")]}] if used else []
    blocks.append({"address": address + used, "size": size - used, "requested_size": 0,
                   "state": "inactive", "frames": []})
    return dict({
        "device": device, "address": address, "total_size": size, "allocated_size": used,
        "active_size": used, "requested_size": max(0, used - 8), "stream": 0,
        "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": [], "blocks": blocks}, **more)


def steps(device, count, names):
    """Two blocks in one segment, taken and given back again and again."""
    base = 0x7F0000000000 + (device << 36)
    events, time = [], 1_700_000_000_000_000
    def add(action, addr, size, **more):
        nonlocal time
        time += 3
        events.append(dict({"action": action, "addr": addr, "size": size, "stream": 0,
                            "time_us": time,
                            "frames": [frame(n) for n in names]}, **more))
    add("segment_alloc", base, 20 * MIB)
    add("alloc", base, 4 * MIB - 8)
    for i in range(count):
        add("alloc", base + 4 * MIB, 2 * MIB)
        add("alloc", base + 6 * MIB, 2 * MIB + i)
        for addr, size in ((base + 6 * MIB, 2 * MIB + i), (base + 4 * MIB, 2 * MIB)):
            add("free_requested", addr, size)
            add("free_completed", addr, size)
    return base, events


def snapshots():
    names = ["inner", "<b>&\"'\\\x1b[31m;\n\t=1+1", "\u202eouter\ud800\x00\uffff", "main"]
    base, events = steps(0, 40, names)
    other, quiet = steps(1, 5, ["=cmd|' /C calc'!A0"])
    events[20]["time_us"] -= 10**9  # times fall
    events.insert(30, {"action": "oom", "size": 64 * MIB, "device_free": MIB, "stream": 0,
                       "time_us": events[29]["time_us"], "frames": [frame("asked")]})
    events.append({"action": "snapshot", "addr": 0, "size": 0, "stream": 0,
                   "time_us": events[-1]["time_us"] + 1, "frames": []})
    marks = [{"name": n, "stage": s, "device": 0, "time_us": 1_700_000_000_000_000 + t}
             for n, s, t in (("a</script>", "START", 5), ("b", "START", 9), ("b", "END", 50),
                             ("a</script>", "END", 40), ("b", "END", 60), ("c", "START", 70))]
    yield "two", {"segments": [segment(0, base, 20 * MIB, 4 * MIB),
                               segment(1, other, 20 * MIB, 4 * MIB)],
                  "device_traces": [events, quiet], "external_annotations": marks}
    yield "bare", [segment(0, base, 20 * MIB, 4 * MIB)]
    yield "no-segments", {"segments": [], "device_traces": [steps(0, 3, ["f"])[1]]}
    yield "no-times", {"segments": [segment(0, base, 20 * MIB, 4 * MIB)], "device_traces": [
        [{k: v for k, v in e.items() if k != "time_us"} for e in steps(0, 9, [])[1]]]}
    many = [steps(d, 2, [f"rank{d}"]) for d in range(64)]
    yield "64-devices", {"segments": [segment(d, m[0], 20 * MIB, 4 * MIB)
                                      for d, m in enumerate(many)],
                         "device_traces": [m[1] for m in many]}
    yield "long-name", {"segments": [segment(0, base, 20 * MIB, 4 * MIB)],
                        "device_traces": [steps(0, 4, ["n" * MIB + ";", "\u00e9" * 700])[1]]}
    wild = steps(0, 4, ["f"])[1]
    wild[3].update(time_us=-2**63)
    wild[4].update(time_us=2**63 - 1)
    wild.append({"action": "oom", "size": 2**63 + 5, "device_free": 2**64 - 1, "stream": 0})
    wild.append({"action": "levitate", "addr": 1, "size": 2, "stream": 2**64 - 1, "time_us": 4})
    yield "wild", {"segments": [], "device_traces": [wild]}


def dump(snapshot):
    """Surrogates are written as the three bytes that are no UTF-8."""
    class Loose(pickle._Pickler):
        dispatch = dict(pickle._Pickler.dispatch)

        def save_str(self, text):
            data = text.encode("utf-8", "surrogatepass")
            self.write(b"X" + len(data).to_bytes(4, "little") + data)

        dispatch[str] = save_str

    buffer = io.BytesIO()
    pickler = Loose(buffer, 4)
    pickler.dump(snapshot)
    return buffer.getvalue()


# --- files appear whole ---------------------------------------------------------------------


def check_atomic(path, folder):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for name in ("o.json", "o.pftrace", "o.sqlite", "o.csv", "o.pickle"):
        output = os.path.join(folder, name)
        export(path, output, code=4, preexec_fn=limit)
        assert os.listdir(folder) == [], f"half a file of {name}"
        pathlib.Path(output).write_text("old")
        os.chmod(output, 0o640)
        export(path, output, code=4, preexec_fn=limit)
        assert pathlib.Path(output).read_text() == "old"
        link = os.path.join(folder, "link-" + name)
        os.symlink(output, link)
        export(path, link)
        assert os.path.islink(link) and os.stat(output).st_size > 3
        assert os.stat(output).st_mode & 0o777 == 0o640
        os.unlink(link)
        os.unlink(output)
    export(path, "/dev/full", "-f", "csv", code=4)
    export(path, os.path.join(folder, "no", "o.csv"), code=4)
    before = pathlib.Path(path).read_bytes()
    export(path, path, "-f", "pickle", code=2)
    assert pathlib.Path(path).read_bytes() == before


def find_queries(manual):
    return re.findall(r"```\n(.*?;)\n```", pathlib.Path(manual).read_text(), re.S)


def main():
    queries = find_queries(sys.argv[3])
    assert len(queries) == 3
    traces = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "out")
        os.mkdir(folder)
        for name, snapshot in snapshots():
            path = os.path.join(scratch, name + ".pickle")
            pathlib.Path(path).write_bytes(dump(snapshot))
            found = check_file(path, folder, queries)
            if name == "two":
                assert all(found), found
                check_atomic(path, folder)
            print(f"ok {name}")
        cases = os.path.join(scratch, "cases")
        subprocess.run([sys.argv[2], cases], check=True, stdout=subprocess.DEVNULL)
        paths = sorted(pathlib.Path(cases).glob("*.pickle"))
        paths += [pathlib.Path(os.environ["DRY_TEST_DATA"]) / "small.trace"]
        is_skipped = not traces.is_dir()
        paths += [] if is_skipped else sorted(traces.glob("*.pickle"))
        for path in paths:
            check_file(str(path), folder, queries, is_deep=False)
            print(f"ok {path.name}")
    if is_skipped:
        print(f"SKIPPED: no recordings in {traces}; set DRY_TEST_TRACES")
        sys.exit(77)


main()
