#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory in pages, read while programs run without a GPU: run.py TOOL [NAME...]

Programs of programs/ stop where they say so; meanwhile their page is read by another process, and
held against what PyTorch said, block by block. Names are those of the functions test_NAME.

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py), $DRYSTONE_LIBRARY is the
library that is meant. Without PyTorch all are skipped.
"""
import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import reader
from reader import wait

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "python"
HOOK = PYTHON / "drystone/torch/hook"
SKIPPED = 77
PINNED, OTHER = 2, 3
MIB = 1 << 20
TOOL = pathlib.Path(sys.argv[1]).resolve()
TORCH = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
WITHOUT = ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF", "DRYSTONE_ALLOCATOR",
           "PYTORCH_ALLOC_CONF", "DRYSTONE_ON_OOM", "DRYSTONE_WATCH", "WORLD_SIZE", "POD_NAMESPACE")


class Program:
    """One of programs/, over two GPUs that are not there.

    way        "call": it publishes; "hook": something else has it publish
    before     words before those of the dry run
    variables  of its environment; {pages} is the folder of its pages
    """

    started = []

    def __init__(self, name, way="call", before=(), allocator="native", **variables):
        self.temporary = tempfile.TemporaryDirectory()
        self.pages = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.out = pathlib.Path(self.temporary.name)
        path = f"{PYTHON}:{TORCH}" if way == "call" else str(TORCH)
        if way == "hook" and not before:
            path = f"{HOOK}:{path}"
        env = {key: value for key, value in os.environ.items() if key not in WITHOUT}
        env.update(PYTHONPATH=path, OMP_NUM_THREADS="1", DRYSTONE=str(TOOL), RANK="3",
                   POD_NAME="train-3", TEST_OUT=str(self.out), TEST_PAGES=self.pages.name,
                   TEST_WAY=way, TEST_ALLOCATOR=allocator,
                   XDG_CACHE_HOME=str(TOOL.parents[1] / "shims"))
        env.update((name, value.format(pages=self.pages.name)) for name, value in variables.items())
        words = [*before, TOOL, "dry-run", "--card", "h100-80", "--gpus", "2", "--steps", "1000",
                 "--output", self.out / "run.pickle", "--", sys.executable,
                 HERE / "programs" / f"{name}.py"]
        self.log = open(self.out / "log", "w+")
        self.child = subprocess.Popen([str(word) for word in words], env=env, text=True,
                                      stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      start_new_session=True)
        Program.started.append(self.child)

    def said(self):
        return (self.out / "log").read_text()

    def at(self, name):
        """What the program has to say at this stop; it stays there."""
        path = self.out / f"{name}.json"

        def look():
            assert path.exists() or self.child.poll() is None, self.said()[-3000:]
            return path.exists()

        wait(look, f"the program is not at {name}", self.said)
        return json.loads(path.read_text())

    def go(self, name):
        (self.out / f"{name}.seen").touch()

    def page(self):
        wait(lambda: reader.pages(self.pages.name), "no page")
        [file] = reader.pages(self.pages.name)
        return reader.Reader(self.pages.name, file)

    def end(self, status=0):
        """Wait for the end; a program that ends by itself leaves no page."""
        self.child.wait(300)
        assert status is None or self.child.returncode == status, self.said()[-3000:]
        left = reader.pages(self.pages.name)
        assert not left, f"the program left {left}"
        self.log.close()
        self.pages.cleanup()
        self.temporary.cleanup()


# --- what a page must say, found another way ----------------------------------------------------

def lane_of(segment, page_bytes):
    """The lane's key, and its sums: each 512 bytes are looked at."""
    units = []
    for block in segment["blocks"]:
        units += [block["state"]] * (block["size"] // 512)
    assert len(units) * 512 == segment["total_size"]
    if not segment["is_expandable"]:
        page_bytes = segment["total_size"]
    is_private = any(segment["segment_pool_id"])
    free = [state == "inactive" for state in units]
    whole = sum(page_bytes for at in range(0, len(units), page_bytes // 512)
                if not is_private and all(free[at:at + page_bytes // 512])
                and at + page_bytes // 512 <= len(units))
    holes = "".join("f" if unit else "u" for unit in free).split("u")
    states = {state: units.count(state) * 512 for state in set(units)}
    sums = {"reserved": segment["total_size"], "allocated": states.get("active_allocated", 0),
            "releasable": whole, "stranded": states.get("inactive", 0) - whole,
            "largest_hole": max(map(len, holes)) * 512}
    sums["pending"] = sums["reserved"] - sums["allocated"] - states.get("inactive", 0)
    return (segment["stream"], *segment["segment_pool_id"]), sums


def page_bytes_of(segment, placement):
    is_large = segment["segment_type"] == "large" and placement != "paged"
    return 20 * MIB if is_large else 2 * MIB


def expect_sums(detail, facts, placement):
    lanes = {}
    for segment in facts["segments"]:
        key, sums = lane_of(segment, page_bytes_of(segment, placement))
        lane = lanes.setdefault(key, dict.fromkeys(sums, 0))
        for name, value in sums.items():
            lane[name] = max(lane[name], value) if name == "largest_hole" else lane[name] + value
    shown = {(lane.stream, lane.pool_a, lane.pool_b): {name: getattr(lane, name) for name in sums}
             for lane in detail.lanes[:detail.lane_count]}
    assert shown == lanes, f"lanes {shown}, PyTorch has {lanes}"
    held = [lane.reserved for lane in detail.lanes[:detail.lane_count]]
    least = 2 if placement == "paged" else 3  # pages of one stream serve another
    assert held == sorted(held, reverse=True) and len(held) >= least, held
    stock = facts["stats"]["reserved_bytes.all.current"] - sum(held)
    assert detail.stock == stock and (stock == 0 or placement == "paged"), (detail.stock, stock)
    for name in ("reserved", "pending", "releasable", "stranded"):
        total = sum(lane[name] for lane in lanes.values())
        total += stock if name in ("reserved", "releasable") else 0
        assert getattr(detail, name) == total, (name, getattr(detail, name), total)
    assert detail.largest_hole == max(lane["largest_hole"] for lane in lanes.values())


def expect_figures(figures, facts):
    names = {"reserved": "reserved_bytes.all.current", "allocated": "allocated_bytes.all.current",
             "active": "active_bytes.all.current", "requested": "requested_bytes.all.current",
             "reserved_peak": "reserved_bytes.all.peak", "retries": "num_alloc_retries",
             "allocated_peak": "allocated_bytes.all.peak", "ooms": "num_ooms",
             "driver_allocs": "num_device_alloc", "driver_frees": "num_device_free"}
    expected = {name: facts["stats"][key] for name, key in names.items()}
    expected["limit"] = facts["total"]
    found = {name: getattr(figures, name) for name in expected}
    assert found == expected, f"{found}, PyTorch says {expected}"


def expect_host(source, facts):
    host = facts["host"]
    reserved, active = (host[f"{name}_bytes.current"] for name in (
        ("allocated", "active") if "active_bytes.current" in host else ("reserved", "allocated")))
    assert source.name == b"pinned" and reserved == 12 * MIB and active in (8 * MIB, 12 * MIB)
    assert source.figures.reserved == source.detail.reserved == reserved
    assert source.figures.active == active and source.detail.releasable == reserved - active
    assert source.figures.driver_allocs == host["num_host_alloc"]


def expect_lines(detail, snapshot):
    """Those of the program, as `drystone top` has them."""
    lines = {line.text.decode(): [line.bytes, line.count]
             for line in detail.lines[:detail.line_count]}
    assert any(held // MIB in (71, 72) and count == 5 for held, count in lines.values()), lines
    told = json.loads(subprocess.run([TOOL, "top", "--json", "--at", "end", "--by", "line",
                                      snapshot], check=True, capture_output=True).stdout)
    owners = {owner["name"]: [owner["bytes"], owner["count"]] for owner in told["owners"]}
    assert lines == owners, f"{lines}, drystone top has {owners}"
    assert list(lines.values()) == sorted(lines.values(), key=lambda held: -held[0])


def expect_requests(page, program, facts):
    """A snapshot is written, and what must not be is refused."""
    path = program.out / "requested.pickle"
    for wrong, result in (("requested.pickle", errno.EINVAL), (program.out, errno.EEXIST),
                          (program.out / "no/folder.pickle", errno.ENOENT)):
        answer = page.request(wrong)
        assert answer.result == result, (wrong, answer.result, answer.text)
    answer = page.request(path)
    assert answer.result == 0 and answer.text.startswith(b"with history; "), answer.text
    told = json.loads(subprocess.run([TOOL, "info", "--json", path], check=True,
                                     capture_output=True).stdout)
    [held] = [device["reserved_bytes"] for device in told["devices"] if device["segments"]]
    assert held == facts["stats"]["reserved_bytes.all.current"], told["devices"]
    assert page.request(path).result == errno.EEXIST
    assert not list(program.out.glob("*.part")) and path.stat().st_mode & 0o777 == 0o600
    return path


# --- tests --------------------------------------------------------------------------------------

def expect_training(program, name, placement="native"):
    facts = program.at("trained")
    page = program.page()
    shown = page.program()
    assert (shown.rank, shown.world, shown.name) == (3, -1, b"train.py"), shown.name
    assert shown.process == facts["process"] and page.is_alive()
    found = page.later()
    assert set(found) == {(PINNED, -1), (OTHER, 1)}, set(found)
    source = found[OTHER, 1]
    assert source.name == name.encode() and source.uuid.startswith(b"GPU-"), source.name
    expect_figures(source.figures, facts)
    expect_sums(source.detail, facts, placement)
    expect_host(found[PINNED, -1], facts)
    return page, facts, source.detail


def test_call():
    program = Program("train")
    page, facts, detail = expect_training(program, "native")
    assert page.program().labels == b"team=vision,pod=train-3", page.program().labels
    expect_lines(detail, expect_requests(page, program, facts))
    assert page.request(program.out / "second.pickle").result == 0
    assert page.request(program.out / "third.pickle").result == -1
    page.close()
    program.go("trained")
    program.end()


def test_expandable():
    program = Program("train", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                      TEST_HISTORY="none")
    page, _, detail = expect_training(program, "native")
    assert detail.line_count == 0
    answer = page.request(program.out / "bare.pickle")
    assert answer.result == 0 and answer.text.startswith(b"segments alone"), answer.text
    page.close()
    program.go("trained")
    program.end()


def test_paged():
    program = Program("train", allocator="paged")
    page, _, _ = expect_training(program, "paged", "paged")
    page.close()
    program.go("trained")
    program.end()


def test_killed():
    program = Program("train", "hook", DRYSTONE_WATCH="{pages}")
    page, facts, _ = expect_training(program, "native")
    os.kill(facts["process"], signal.SIGKILL)
    wait(lambda: not page.is_alive(), "the program lives")
    assert page.sources()[OTHER, 1].figures.reserved > 0
    page.remove()
    page.close()
    program.end(None)


def test_forked():
    program = Program("fork")
    facts = program.at("forked")
    page = program.page()
    expect_figures(page.later()[OTHER, 0].figures, facts)
    page.close()
    program.go("forked")
    program.end()


def test_host():
    program = Program("host")
    program.at("host")
    page = program.page()
    assert not page.sources() and page.is_alive()
    assert page.request(program.out / "none.pickle").result == -1
    page.close()
    program.go("host")
    program.end()


def test_watched_host():
    """Through `drystone run`, and with no page before CUDA is used."""
    program = Program("host", "hook", [TOOL, "run", "--watch", "--quiet", "--malloc", "keep"],
                      DRYSTONE_WATCH="{pages}")
    program.at("host")
    assert not reader.pages(program.pages.name)
    program.go("host")
    program.end()


def test_watched():
    program = Program("train", "hook", [TOOL, "run", "--watch", "--allocator", "torch", "--quiet"],
                      DRYSTONE_WATCH="{pages}")
    page, _, _ = expect_training(program, "torch")
    page.close()
    program.go("trained")
    program.end()


def test_no_folder():
    """The program goes on, and one line says why."""
    program = Program("train", "hook", DRYSTONE_WATCH="/nowhere")
    program.at("trained")
    program.go("trained")
    program.child.wait(300)
    assert program.said().count("drystone: the memory of this process is not all published") == 1
    assert "/nowhere" in program.said()
    program.end()


def main():
    if not (TORCH / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    tests = {name[5:]: value for name, value in globals().items() if name.startswith("test_")}
    try:
        for name in sys.argv[2:] or tests:
            tests[name]()
            print(f"{name}: ok", flush=True)
    finally:
        for child in Program.started:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


main()
