#!/usr/bin/env python3
"""What a report holds is true: report.py TOOL MAKE_CASES

The answers in a report are unpacked as the page unpacks them, and held against a naive model
of the recording, made of Python's own unpickling, and against what the commands print.
"""
import base64
import json
import os
import pathlib
import pickle
import re
import struct
import subprocess
import sys
import tempfile
import zlib

NONE = 0xFFFFFFFF
TYPES = {1: "B", 2: "I", 3: "d", 4: "Q"}
COMMANDS = ("explain", "info", "steps", "sweep")
MAPS_CHECKED = 4


def unpack(pack):
    """Read the columns of a pack, each a tuple."""
    assert pack[:4] == b"DSV1", pack[:4]
    columns = {}
    for i in range(struct.unpack_from("<I", pack, 4)[0]):
        name, kind, zero, at, count = struct.unpack_from("<16sIIII", pack, 8 + 32 * i)
        assert zero == 0 and at % 8 == 0
        name = name.rstrip(b"\0").decode()
        assert name not in columns, name
        columns[name] = struct.unpack_from(f"<{count}{TYPES[kind]}", pack, at)
    return columns


def read_report(path):
    """Read the answers of a report by their keys."""
    page = path.read_text(encoding="utf-8")
    assert "connect-src 'none'" in page and "connect-src 'self'" not in page
    found = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', page, re.S)
    assert len(found) == 1
    return {key: zlib.decompress(base64.b64decode(text, validate=True))
            for key, text in json.loads(found[0]).items()}


def run(tool, *words, status=(0, 1)):
    done = subprocess.run([tool, *map(str, words)], capture_output=True, check=False)
    assert done.returncode in status, (words, done.returncode, done.stderr)
    return done.stdout


class Device:
    """One device of a recording, as Python reads it."""

    def __init__(self, snapshot, device):
        self.events = snapshot["device_traces"][device] if snapshot["device_traces"] else []
        self.segments = [s for s in snapshot["segments"] if s["device"] == device]
        self.births = {}  # moment: (address, bytes)
        self.ends = {}  # moment of birth: moment of the end
        alive = {}
        for moment, event in enumerate(self.events, 1):
            if event["action"] == "alloc":
                self.births[moment] = (event["addr"], event["size"])
                alive[event["addr"]] = moment
            elif event["action"] == "free_completed" and event["addr"] in alive:
                self.ends[alive.pop(event["addr"])] = moment


def check_allocs(pack, model):
    for i, begin in enumerate(pack["alloc_begin"]):
        assert pack["alloc_size"][i] >= pack["alloc_req"][i] or pack["alloc_flags"][i] & 5
        if begin == 0:
            assert pack["alloc_flags"][i] & 1
            continue
        assert model.births[begin] == (pack["alloc_addr"][i], pack["alloc_req"][i])
        if begin in model.ends:
            assert pack["alloc_end"][i] == model.ends[begin]
    assert len(set(pack["alloc_id"])) == len(pack["alloc_id"])


def check_stack(pack):
    """Runs of a column lie one on the other, and reach the highest active bytes in it."""
    count = len(pack["col_at"])
    kinds = len(pack["small_by"]) // count
    cells = [[] for _ in range(count)]
    assert len(pack["small_below"]) == 1
    assert all(pack["alloc_size"][row] >= pack["small_below"][0] for row in pack["run_alloc"])
    for row, begin, end, bottom in zip(pack["run_alloc"], pack["run_from"], pack["run_to"],
                                       pack["run_bottom"]):
        assert begin < end <= count
        for column in range(begin, end):
            cells[column].append((bottom, pack["alloc_size"][row]))
    for column in range(count):
        height = 0
        for bottom, size in sorted(cells[column]):
            assert bottom == height, (column, bottom, height)
            height += size
        assert height + pack["small_bytes"][column] == pack["active_max"][column]
        by = pack["small_by"][column * kinds:column * kinds + kinds]
        assert min(by) >= 0 and sum(by) == pack["small_bytes"][column]
        assert pack["col_begin"][column] <= pack["col_at"][column] < pack["col_end"][column]


def check_tiles(answers, key, device, model):
    """Levels hold all moments once, and the true peaks. True: all tiles are there."""
    is_whole = True
    for level in range(device["levels"]):
        at, reserved, active = 0, 0, 0
        for index in range(1 << level):
            packed = answers.get(f"{key}/tile/{level}/{index}")
            if packed is None:
                is_whole = False
                at = None
                continue
            pack = unpack(packed)
            check_allocs(pack, model)
            check_stack(pack)
            begin = device["moments"] * index >> level
            assert pack["col_begin"][0] == begin and (at is None or at == begin)
            at = pack["col_end"][-1]
            assert list(pack["col_begin"][1:]) == list(pack["col_end"][:-1])
            if level == device["levels"] - 1:
                assert at - begin == len(pack["col_begin"])
            reserved = max(reserved, *pack["reserved_max"])
            active = max(active, *pack["active_max"])
        if at is not None:
            assert at == device["moments"]
            assert reserved == device["peaks"]["reserved"]["bytes"]
            assert active == device["peaks"]["active"]["bytes"]
    return is_whole


def check_map(pack, device, model, moment):
    sums = [0] * len(pack["seg_size"])
    active = 0
    for i, segment in enumerate(pack["block_seg"]):
        assert pack["block_offset"][i] == sums[segment]
        sums[segment] += pack["block_size"][i]
        active += pack["block_size"][i] if pack["block_state"][i] else 0
        assert (pack["block_alloc"][i] == NONE) <= (pack["block_state"][i] == 0)
    assert tuple(sums) == pack["seg_size"]
    check_allocs(pack, model)
    if moment == device["peaks"]["active"]["moment"]:
        assert active <= device["peaks"]["active"]["bytes"]
    if moment == device["moments"] - 1:
        assert sorted(pack["seg_addr"]) == sorted(s["address"] for s in model.segments)


def check_events(answers, key, model, actions):
    for page in range(len(model.events) // 1024 + 1):
        packed = answers.get(f"{key}/events/{page}")
        if packed is None:
            continue
        pack, rows = unpack(packed), model.events[page * 1024:page * 1024 + 1024]
        assert [actions[a] for a in pack["ev_action"]] == [e["action"] for e in rows]
        assert list(pack["ev_size"]) == [e["size"] for e in rows]


def check_owners(tool, path, answer, device, moment):
    told = json.loads(answer)
    at = {"end": "end"}.get(next(p["name"] for p in device["places"]
                                 if p["moment"] == moment), "peak")
    if at == "peak" and moment != device["peaks"]["active"]["moment"]:
        return
    top = json.loads(run(tool, "top", "--json", "--at", at, "--device", device["device"], path))
    assert [o["bytes"] for o in told["owners"]] == [o["bytes"] for o in top["owners"]]
    assert told["total_bytes"] == sum(o["bytes"] for o in told["owners"]) + told["others_bytes"]


def check_names(tool, path, texts, pack):
    """The owners of `drystone top` have names that frames have by line, function and file."""
    names = {"line": set(), "function": set(), "module": set()}
    for module, function, line in zip(pack["frame_module"], pack["frame_func"],
                                      pack["frame_line"]):
        file, name = texts[module], texts[function]
        place = f"{file}:{line}" if line else file
        names["line"].add(" ".join(filter(None, (place, name))) or "(no name)")
        names["function"].add(" ".join(filter(None, (file, name))) or "(no name)")
        names["module"].add(file or "(no name)")
    for by, known in names.items():
        for owner in json.loads(run(tool, "top", "--json", "--by", by, path))["owners"]:
            name = owner["name"].removesuffix(" (freed there)")
            assert name in known or name.startswith("("), (by, name)


def check_stacks(tool, path, pack, snapshot):
    """Every text of a frame of the file is there, as the file has it."""
    text = bytes(pack["text"])
    texts = [text[a:b].decode() for a, b in zip(pack["text_from"], pack["text_from"][1:])]
    told = {(texts[n], line) for n, line in zip(pack["frame_name"], pack["frame_line"])
            if n != NONE}
    for trace in snapshot["device_traces"]:
        for event in trace:
            for frame in event.get("frames", []):
                line = frame["line"] if frame["line"] < NONE else 0  # C++ has -1 as 2^64 - 1
                assert (frame["name"], line) in told
    assert len(pack["stack_from"]) == len(pack["stack_site"]) + 1
    check_names(tool, path, texts, pack)


def check_curves(answers):
    """The curves under other settings reach what `sweep` says of them."""
    peaks = {row["conf"]: row["reserved_peak_bytes"]
             for row in json.loads(answers["0/sweep"])["candidates"] if not row["oom"]}
    for key, packed in answers.items():
        conf = key.partition("/reserved/")[2] if "/reserved/" in key else None
        if conf in peaks:
            assert max(unpack(packed)["reserved_max"]) == peaks[conf], key


def check_file(tool, path, folder):
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    page = folder / "report.html"
    run(tool, "view", path, "-o", page, status=(0,))
    answers = read_report(page)
    about = json.loads(answers["about"])
    for command in COMMANDS:
        assert json.loads(answers[f"0/{command}"]) == json.loads(run(tool, command, "--json", path))
    check_stacks(tool, path, unpack(answers["0/stacks"]), snapshot)
    check_curves(answers)
    is_whole = True
    for i, device in enumerate(about["files"][0]["devices"]):
        key, model = f"0/{i}", Device(snapshot, device["device"])
        is_whole &= check_tiles(answers, key, device, model)
        check_events(answers, key, model, about["actions"])
        for place in device["places"]:
            moment = place["moment"]
            check_map(unpack(answers[f"{key}/map/{moment}"]), device, model, moment)
            check_owners(tool, path, answers[f"{key}/owners/{moment}"], device, moment)
    assert is_whole or about["left_out"]
    return len(answers)


def check_budget(tool, path, folder):
    """A page is as small as asked, and says what it lacks; what matters most is in it."""
    page = folder / "small.html"
    small = 512 << 10
    run(tool, "view", "--max-size", f"{small}B", path, "-o", page, status=(0,))
    answers = read_report(page)
    assert page.stat().st_size <= small, page.stat().st_size
    about = json.loads(answers["about"])
    assert about["left_out"] and {"0/explain", "0/0/tile/0/0"} <= set(answers), about["left_out"]


def check_hostile(tool, path, folder):
    """Names of a file can end nothing in the page."""
    evil = "</script><script>alert(1)</script>"
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    for trace in snapshot["device_traces"]:
        for event in trace:
            for frame in event.get("frames", []):
                frame["name"] = frame["filename"] = evil
    hostile = folder / f"{'<b>evil'}.pickle"
    hostile.write_bytes(pickle.dumps(snapshot, protocol=4))
    page = folder / "hostile.html"
    run(tool, "view", "--quick", hostile, "-o", page, status=(0,))
    assert "alert(1)" not in page.read_text() and "<b>evil" not in page.read_text()
    assert json.loads(read_report(page)["about"])["files"][0]["name"] == hostile.name


def make_series(snapshot):
    """What `drystone dry-run --vary BATCH=8,16,32 --json` prints, less what the page does not take."""
    runs = [{"run": "BATCH=8", "fits": True, "reserved_peak_bytes": 5 << 30, "allocated_peak_bytes": 4 << 30,
             "room_bytes": 9 << 30, "unseen": None, "snapshot": str(snapshot)},
            {"run": "BATCH=16", "fits": False, "reserved_peak_bytes": 8 << 30, "allocated_peak_bytes": 7 << 30,
             "room_bytes": 9 << 30, "unseen": None, "snapshot": None},
            {"run": "BATCH=32", "fits": None, "reserved_peak_bytes": None, "allocated_peak_bytes": None,
             "room_bytes": 9 << 30, "unseen": "what follows", "snapshot": "/gone/elsewhere.pickle"}]
    return {"schema": "drystone.dry-run/1", "card": "l4-24", "best": "BATCH=8", "runs": runs}


def check_series(tool, path, folder):
    """The page has the runs of a dry run; a file that is none is refused."""
    page, file = folder / "series.html", folder / "runs.json"
    wanted = make_series(path)
    file.write_text(json.dumps(wanted))
    run(tool, "view", "--quick", "--series", file, path, "-o", page, status=(0,))
    told = json.loads(read_report(page)["about"])["series"]
    assert told["card"] == "l4-24" and told["best"] == "BATCH=8"
    assert [row.pop("snapshot") for row in told["runs"]] == [path.name, None, "elsewhere.pickle"]
    for row, made in zip(told["runs"], wanted["runs"], strict=True):
        assert row == {key: made[key] for key in row} and len(row) == 6, row
    run(tool, "view", "--quick", path, "-o", page, status=(0,))
    assert json.loads(read_report(page)["about"])["series"] is None
    run(tool, "view", "--series", file, "--terminal", path, status=(2,))
    run(tool, "view", "--series", file, path, "-o", file, status=(2,))
    single = {**wanted["runs"][0], "schema": "drystone.dry-run/1"}
    many = {**wanted, "runs": wanted["runs"] * 400}
    wrong = {**wanted, "runs": [{**wanted["runs"][0], "reserved_peak_bytes": -1}]}
    for hostile in ("", "[", "[]", "{}", single, many, wrong, {**wanted, "schema": "drystone.explain/1"},
                    {**wanted, "runs": []}, {**wanted, "runs": [1]}, {**wanted, "runs": {"a": 1}},
                    {**wanted, "runs": [{"run": "x", "fits": 1}]}, {**wanted, "runs": [{"fits": True}]}):
        file.write_text(hostile if isinstance(hostile, str) else json.dumps(hostile))
        run(tool, "view", "--quick", "--series", file, path, "-o", folder / "never.html", status=(3,))
    assert not (folder / "never.html").exists()


def check_refusals(tool, path, folder):
    for words, status in ((["view", "-o", "-"], 2), (["view", "-", "-o", "x"], 2),
                          (["view", path, "-o", path], 2), (["view", path, "--quick"], 2),
                          (["view", path, "-o", "x", "--max-size", "1KiB"], 2),
                          (["view", path, "-o", "x", "--port", "8000"], 2),
                          (["view", folder / "absent", "-o", "x"], 3),
                          (["view", path, "-o", folder / "no" / "where.html"], 4)):
        run(tool, *words, status=(status,))
        assert not list(folder.glob("*.part-*"))


def recordings():
    folder = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    names = ("tiny-cs336", "compile-context", "transformer-medium-128-infer",
             "transformer-medium-512-train")
    return [folder / f"{name}.pickle" for name in names if (folder / f"{name}.pickle").exists()]


def main():
    tool, make_cases = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = folder / "cases"
        run(make_cases, cases, status=(0,))
        files = sorted(cases.glob("*.pickle"))
        real = recordings()
        # Under expandable segments it is served what it failed to get.
        served = [cases / "fragmentation-varlen.pickle"]
        for path in files[::5] + served + real:
            print(f"{path.name}: {check_file(tool, path, folder)} answers are true")
        if real:
            check_budget(tool, real[-1], folder)
        check_hostile(tool, files[0], folder)
        check_series(tool, files[0], folder)
        check_refusals(tool, files[0], folder)
        if not real:
            print("no real recordings: made ones were looked at, none of which is large")


main()
