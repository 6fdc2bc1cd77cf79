#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Running programs as `drystone live` shows them, by pages of known truth: live.py TOOL SHOW_PAGE NVML"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

from program import GIB, MIB, UNKNOWN, Machine, growing, measure_in_peace

HOSTILE = "evil\\x1b[2J\\x1b]0;title\\x07\\x0aline\\xe2\\x80\\xaeright\\xff"


def check_width(text):
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text, repr(text)


def check_nothing(m):
    text = m.live()
    assert "no devices: the driver is not asked" in text, text
    assert "none that shows a page" in text, text
    assert m.json() | {"at_ns": 0} == {
        "schema": "drystone.live/1", "at_ns": 0, "no_driver": "the driver is not asked",
        "devices": [], "left_out": 0, "processes": []}
    assert "no process of this number or name" in m.live("nobody", code=3)
    assert "no process" in m.live("999999999", code=3)


def check_pool(m):
    """A pool is shown as the pool itself says."""
    program = m.start("train.py", rank=3, world=8, labels="pod=train-3,namespace=ml")
    for seed, device in ((1, 0), (2, 1)):
        reserved, allocated = map(int, program.tell("pool", "native", device, GIB, seed, 700))
        [process] = m.json()["processes"]
        assert process["pid"] == program.pid and process["state"] == "live"
        assert (process["name"], process["rank"], process["world"]) == ("train.py", 3, 8)
        assert process["labels"] == "pod=train-3,namespace=ml"
        source = process["sources"][device]
        assert source["kind"] == "pool" and source["number"] == device, source
        assert source["limit_bytes"] == GIB, source
        assert (source["reserved_bytes"], source["allocated_bytes"]) == (reserved, allocated)
        detail = source["detail"]
        assert reserved == detail["reserved_bytes"] == allocated + sum(
            detail[f"{what}_bytes"] for what in ("pending", "releasable", "stranded"))
        for what in ("reserved_bytes", "pending_bytes", "releasable_bytes", "stranded_bytes"):
            assert sum(lane[what] for lane in detail["lanes"]) == detail[what]
        assert {lane["stream"] for lane in detail["lanes"]} == {0, 1, 2, 3}
    text = m.live(program.pid)
    check_width(text)
    assert f"{program.pid} train.py, rank 3 of 8" in text
    assert "native on its device 1" in text and "pod=train-3, namespace=ml" in text
    assert re.search(r"reserved +[0-9.]+ MiB  of 1\.00 GiB", text), text
    assert m.live("train") == m.live("--once", "rain.py") or "ago" in text
    program.end()
    assert m.json()["processes"] == []


def check_devices(m):
    a, b = m.start("train", rank=0), m.start("x" * 300)
    a.tell("source", "torch", 0, "GPU-b")
    a.tell("figures", 0, 3 * GIB, 2 * GIB, UNKNOWN, 7, 1)
    a.tell("lane", 0, 140245878123456789, 12, 3 * GIB, 2 * GIB, 0, GIB, 0, GIB)
    a.tell("line", 0, 2 * GIB, 1234567, "/very/long" * 12 + "/model.py:31_forward")
    m.devices("device NVIDIA_H100_80GB_HBM3_of_a_very_long_name_indeed GPU-a 8000000000 0",
              "device B GPU-b 4294967296 3758096384",
              f"process 1 {a.pid} 3500000000", f"process 0 {os.getpid()} 123456789")
    report = m.json()
    assert [d["memory_used_bytes"] for d in report["devices"]] == [0, 3758096384]
    by_pid = {p["pid"]: p for p in report["processes"]}
    assert by_pid[os.getpid()]["state"] == "seen"
    assert by_pid[os.getpid()]["driver"] == [{"device": 0, "bytes": 123456789}]
    assert by_pid[os.getpid()]["reserved_bytes"] == 123456789
    [source] = by_pid[a.pid]["sources"]
    assert source["device"] == 1 and source["number"] == 0 and source["uuid"] == "GPU-b"
    assert source["limit_bytes"] == 4 * GIB and source["room_bytes"] == 512 * MIB
    assert source["detail"]["lanes"][0]["stream"] == 140245878123456789
    for words in ((), (a.pid,), (os.getpid(),)):
        check_width(m.live(*words))
    assert re.search(r"1  B +3\.50 GiB  4\.00 GiB +88 %  \[#########-\]", m.live()), m.live()
    assert "nobody knows how much of that is in use" in m.live(os.getpid())
    wide = subprocess.run(m.words(), env={**m.environment(), "COLUMNS": "200"}, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "80GB_HBM3".replace("_", " ") + " of a very long name indeed" in wide
    b.end()
    a.end()
    m.facts.unlink()


def check_hostile(m):
    """No text of a page reaches a terminal as it is."""
    program = m.start(HOSTILE, labels=HOSTILE)
    program.tell("source", HOSTILE[:60], 0, "\\x1b[31m")
    program.tell("figures", 0, UNKNOWN, UNKNOWN - 1, UNKNOWN, 10**9, 10**9)
    program.tell("lane", 0, UNKNOWN, UNKNOWN, *[UNKNOWN] * 6)
    program.tell("line", 0, UNKNOWN, 10**9, HOSTILE)
    (m.folder / "drystone-live-1-0").write_bytes(b"\x1b[31m")
    m.devices("device \x1b[31mA GPU-a 100 200", "process 0 1 7")
    text = m.live("evil")
    check_width(text)
    assert "evil?[2J" in text
    process, = (p for p in m.json()["processes"] if p["state"] == "live")
    assert "\x1b" not in json.dumps(process, ensure_ascii=False)
    assert "bad" in m.live()
    program.end()
    (m.folder / "drystone-live-1-0").unlink()
    m.facts.unlink()


def check_ended(m):
    program = m.start("killed")
    program.tell("source", "torch", 0, "-")
    program.tell("figures", 0, GIB, GIB, UNKNOWN, 0, 0)
    program.end("kill")
    [process] = m.json()["processes"]
    assert process["state"] == "ended" and process["pid"] == program.pid
    assert not (m.folder / program.page).exists()


def measure_trend(m):
    program = m.start("grows")
    program.tell("source", "torch", 0, "-")

    def step(now):
        program.tell("figures", 0, int(GIB + now * 16 * MIB), GIB, 2 * GIB, int(now), 0)
    with subprocess.Popen(m.words("--json", "--every", "0.5", "grows"), stdout=subprocess.PIPE,
                          env=m.environment(), text=True) as stream, \
         subprocess.Popen(m.words("--for", "6", "grows"), stdout=subprocess.PIPE,
                          env=m.environment(), text=True) as look:
        with growing(step) as pause:
            lines = [stream.stdout.readline() for _ in range(12)]
            text = look.stdout.read()
        program.end()
        lines += stream.stdout
        assert stream.wait() == 0 and look.wait() == 0
    return *pause, text, [json.loads(line) for line in lines]


def check_trend(m):
    """Growth of 16 MiB a second, as --for and a stream see it."""
    text, documents = measure_in_peace(measure_trend, m)
    check_width(text)
    assert re.search(r"trend +\+1[4-8]\.\d\d MiB/s: full in (5\d|6\d) s at this rate", text), text
    source = documents[11]["processes"][0]["sources"][0]
    assert 14 * MIB < source["growth_per_s"] < 18 * MIB, source
    assert 45 < source["retries_per_min"] < 75, source
    assert 40 < source["time_to_limit_seconds"] < 75, source
    assert documents[0]["processes"][0]["sources"][0]["growth_per_s"] is None


def check_refusals(m):
    for words, said in ((("--every", "0"), "a number of seconds from 0.05 to 3600"),
                        (("--every", "nan"), "a number of seconds"),
                        (("--for", "x"), "a number of seconds"),
                        (("a", "b"), "one PID or NAME is expected")):
        assert said in m.live(*words, code=2), words
    full = subprocess.run([*m.words("--json"), "--every", "0.05"], check=False,
                          stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True)
    assert full.returncode == 4 and "cannot write" in full.stderr, full


def check_stream_ends(m):
    """A pipe that nobody reads any more ends the stream."""
    with subprocess.Popen(m.words("--json", "--every", "0.05"), stdout=subprocess.PIPE) as stream:
        stream.stdout.readline()
        stream.stdout.close()
        assert stream.wait(timeout=60) == -signal.SIGPIPE


def main():
    with Machine(*sys.argv[1:4]) as m:
        for check in (check_nothing, check_pool, check_devices, check_hostile, check_ended,
                      check_trend, check_refusals, check_stream_ends):
            check(m)
        assert not list(pathlib.Path(m.folder).glob("drystone-live-*"))


main()
