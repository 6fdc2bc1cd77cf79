#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone live --metrics` prints what pages say: exporter.py TOOL NVML

NVML is that of test/golden/live, which reads its devices from a file.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import pages
import text

tool, driver = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
work = pathlib.Path(tempfile.mkdtemp(
    dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
SEED = 20261127
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def folder(name):
    made = work / name
    made.mkdir()
    return made


def export(where, *words, devices=None, code=0):
    """The text, read; without `devices` the driver is not asked."""
    environment = dict(os.environ)
    if devices is not None:
        (work / "nvml").write_text("\n".join(devices) + "\n")
        environment["DRY_TEST_NVML"] = str(work / "nvml")
        environment["LD_LIBRARY_PATH"] = str(driver.parent)
    no_driver = ["--no-driver"] if devices is None else []
    done = subprocess.run([tool, "live", "--metrics", "--folder", where, *no_driver,
                           *map(str, words)], capture_output=True, env=environment, check=False)
    assert done.returncode == code, done
    lint(done.stdout)
    return text.read(done.stdout.decode("utf-8"), False)


def lint(told):
    """promtool finds nothing to say, where it is installed."""
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=told, capture_output=True,
                              check=False)
        assert done.returncode == 0 and not done.stderr + done.stdout, done


COUNTS = ("retries", "ooms", "driver_allocs", "driver_frees", "driver_calls", "pages_moved")


def check_figures():
    """Each figure of each source, chosen at random, is in the family of its name."""
    rng = random.Random(SEED)
    where = folder("figures")
    shown = []
    for rank in range(4):
        page = pages.Page(where, b"train", b"pod=train-%d" % rank, rank)
        for device in range(2):
            figures = {name: rng.randrange(1 << 53) for name in pages.FIGURES}
            sums = [rng.randrange(1 << 53) for _ in pages.SUMS]
            page.add(b"torch", device=device, sums=sums, **figures)
            shown.append((rank, device, figures, dict(zip(pages.SUMS, sums))))
        page.add(b"native", kind=pages.OTHER, device=2, reserved=7 + rank)
    told = export(where)
    for rank, device, figures, sums in shown:
        labels = {"rank": rank, "device": device, "allocator": "torch", "name": "train",
                  "exported_pod": f"train-{rank}", "process": os.getpid()}
        for name, value in figures.items():
            is_count = name in COUNTS
            ending = "_total" if is_count else "_peak_bytes" if "peak" in name else "_bytes"
            family = f"process_{name.replace('_peak', '')}{ending}"
            if name == "driver_time_ns":
                family, value = "process_driver_time_seconds_total", round(value * 1e-9, 6)
            assert text.one(told, family, **labels) == value, family
        for name in pages.SUMS[1:]:
            assert text.one(told, f"process_{name}_bytes", **labels) == sums[name], name
        room = max(figures["limit"] - figures["reserved"], 0)
        assert text.one(told, "process_room_bytes", **labels) == room
        assert 0 <= text.one(told, "process_update_age_seconds", **labels) < 60
    for rank in range(4):
        labels = {"rank": rank, "device": 2, "allocator": "native"}
        assert text.one(told, "process_reserved_bytes", **labels) == 7 + rank
        for absent in ("stranded_bytes", "limit_bytes", "room_bytes", "time_to_limit_seconds"):
            assert text.find(told, f"process_{absent}", **labels) == [], absent
    assert text.one(told, "exporter_pages") == 4
    assert text.one(told, "exporter_driver_up") == 0
    assert not any(name.startswith("drystone_lane_") for name in told)


def check_pinned():
    """Host memory has families of its own: a sum over devices' memory has none of it."""
    where = folder("pinned")
    page = pages.Page(where)
    page.add(reserved=100, sums=(100, 1, 2, 3, 4))
    page.add(b"pinned", kind=pages.PINNED, device=-1, reserved=50, sums=(50, 5, 6, 7, 8))
    page.add(b"cached", kind=pages.OTHER, device=-1, reserved=30)
    told = export(where)
    assert sum(text.find(told, "process_reserved_bytes")) == 100
    assert sum(text.find(told, "pinned_reserved_bytes", device="host")) == 80
    assert text.find(told, "pinned_stranded_bytes") == [7]
    assert text.find(told, "pinned_ooms_total") == []
    lanes = text.find(export(where, "--lanes", 1), "lane_reserved_bytes")
    assert lanes == [100], lanes


def check_devices():
    """The driver's devices, and processes that have no page; parts of a device are one."""
    where = folder("devices")
    page = pages.Page(where)
    page.add(device=0, uuid=UUID.encode(), reserved=30 << 30)
    page.add(device=0, reserved=1 << 30)
    told = export(where, devices=[
        f'device NVIDIA_"H100" GPU-0 {80 << 30} {50 << 30}',
        f"device NVIDIA_A100 {UUID} {40 << 30} {39 << 30}",
        f"process 0 {os.getpid()} {5 << 30}", f"process 1 {os.getpid()} {31 << 30}",
        f"process 1 {os.getppid()} {2 << 30}", f"process 1 {os.getppid()} {3 << 30}",
        "process 0 4000000 100", f"process 0 4000001 {pages.UNKNOWN}"])
    assert text.one(told, "exporter_driver_up") == 1
    assert text.one(told, "device_memory_size_bytes", device=0, uuid="GPU-0",
                    model='NVIDIA "H100"') == 80 << 30
    assert text.one(told, "device_memory_used_bytes", device=1, model="NVIDIA A100") == 39 << 30
    moved = text.find(told, "process_room_bytes", device=1, uuid=UUID)
    assert moved == [1 << 30], "the driver's name of a device counts, not the program's number"
    assert text.one(told, "process_limit_bytes", device=1) == 40 << 30
    assert text.one(told, "process_driver_used_bytes", process=os.getpid(), device=0) == 5 << 30
    assert text.one(told, "process_driver_used_bytes", process=os.getppid()) == 5 << 30
    assert text.one(told, "process_driver_used_bytes", process=4000000) == 100
    assert text.find(told, "process_driver_used_bytes", process=4000001) == []


def check_hostile_texts():
    """Whatever a page's texts are, the text is read as it should be, and says it printably."""
    where = folder("texts")
    evil = b'a"b\\c\nd\x1b[31m\xff\xc3\xa9} 1\n# EOF\n'
    page = pages.Page(where, evil, b"pod=x\"y\\,secret=1,pod=second,node=\x07,=,namespace,"
                      b"namespace=,container=c,exported_pod=z,slurm_job_id=" + b"7" * 150, 1)
    page.add(evil[:31], uuid=evil, reserved=1)
    pages.Page(where, b"x" * 127, b"pod=" + "é".encode() * 120, 2).add(b"\xff" * 31, reserved=2)
    told = export(where)
    (labels,) = [dict(keys) for keys in told["drystone_process_reserved_bytes"]
                 if ("rank", "1") in keys]
    assert labels["name"] == 'a"b\\c?d?[31m?é} 1?# EOF?', labels
    assert labels["exported_pod"] == 'x"y\\' and labels["exported_node"] == "?", labels
    assert labels["exported_container"] == "c"
    assert labels["exported_slurm_job_id"] == "7" * 128
    assert set(labels) == {"process", "name", "rank", "device", "uuid", "allocator", "source",
                           "exported_pod", "exported_node", "exported_container",
                           "exported_slurm_job_id"}, labels
    assert text.one(told, "process_reserved_bytes", exported_pod="é" * 64) == 2


def check_random_texts():
    rng = random.Random(SEED)
    where = folder("random")
    for _ in range(40):
        some = [bytes(rng.choice(b'abp=,od"\\\n\x00\x80\xc3\xa9\xe2\x80\xae\xf0\x9f') or 1
                      for _ in range(rng.randrange(size))) for size in (128, 256, 32, 48)]
        pages.Page(where, some[0], b"pod=" + some[1][4:]).add(some[2][:31], uuid=some[3][:47],
                                                              reserved=1)
    assert len(export(where)["drystone_process_reserved_bytes"]) == 40


def check_bounds():
    """The largest processes are exported and the rest counted; sources and lanes have ends."""
    where = folder("bounds")
    for i in range(20):
        page = pages.Page(where)
        for device in range(pages.SOURCES_MAX):
            page.add(device=device, reserved=i + 1)
    told = export(where, "--processes-max", 5)
    values = text.find(told, "process_reserved_bytes")
    assert sorted(set(values)) == [16, 17, 18, 19, 20] and len(values) == 5 * 24
    assert text.one(told, "exporter_processes_left_out") == 15
    assert text.one(export(where), "exporter_processes_left_out") == 0


def check_lanes():
    """Lanes beyond N are one, and all together are the source's; a lane told twice counts once."""
    where = folder("lanes")
    lanes = [(0, (0, 0), 100, 60, 10, 20, 10, 5), (0x7F00, (0, 0), 50, 20, 5, 15, 10, 9),
             (0, (3, 1), 30, 10, 0, 0, 20, 20), (0, (0, 0), 8, 8, 0, 0, 0, 0)]
    page = pages.Page(where)
    page.add(reserved=200, lanes=lanes, stock=12, sums=(200, 15, 47, 48, 20))
    told = export(where, "--lanes", 2)
    for name, total in zip(pages.LANE, (200, 90, 15, 47, 48)):
        assert sum(text.find(told, f"lane_{name}_bytes")) == total, name
    assert text.one(told, "lane_reserved_bytes", pool="default", lane="0x7f00") == 50
    assert text.one(told, "lane_reserved_bytes", pool="default", lane="0") == 100
    assert text.one(told, "lane_largest_hole_bytes", pool="other", lane="other") == 20
    told = export(where, "--lanes", 48)
    assert text.one(told, "lane_stranded_bytes", pool="3.1", lane="0") == 20
    assert text.one(told, "lane_reserved_bytes", lane="other") == 20
    wild = pages.Page(where, b"wild")
    wild.add(b"wild", reserved=5, lanes=[(1, (0, 0), *[1 << 60] * 6)],
             sums=(1, pages.UNKNOWN - 1, pages.UNKNOWN - 1, pages.UNKNOWN - 1, 1))
    assert text.one(export(where, "--lanes", 1), "lane_reserved_bytes", name="wild",
                    lane="other") == 0


def check_refused():
    """Pages that cannot be used are counted, and a folder that is not there has none."""
    where = folder("refused")
    pages.Page(where).add(reserved=1)
    wrong = pages.Page(where)
    wrong.layout.version = 9
    wrong.write()
    (where / "drystone-live-1-1").write_bytes(b"")
    odd = pages.Page(where)
    odd.add(reserved=2)
    odd.layout.slots[0].source.detail.lane_count = 1000
    odd.write()
    told = export(where)
    assert text.one(told, "exporter_pages") == 1
    assert text.one(told, "exporter_pages_refused") == 3
    assert text.one(export(work / "absent"), "exporter_pages") == 0


def check_ended():
    """A program that has ended is counted, with the requests that it was refused."""
    where = folder("ended")
    page = pages.Page(where)
    page.add(reserved=1, ooms=3, retries=4)
    page.close_and_leave()
    told = export(where)
    assert text.one(told, "exporter_ended_programs_total") == 1
    assert text.one(told, "exporter_ended_ooms_total") == 3
    assert text.one(told, "exporter_ended_retries_total") == 4
    assert text.find(told, "process_reserved_bytes") == [] and not page.path.exists()


IN_CONTAINER = """\
import os, sys, pages
page = pages.Page("/dev/shm", b"guest", process=int(sys.argv[1]))
page.add(reserved=int(sys.argv[1]))
os.write(1, b"%d\\n" % os.getpid())
sys.stdin.read()
"""


def check_container():
    """Pages in a container's own /dev/shm are found through the driver's list, each once."""
    where = folder("container")
    here = pathlib.Path(__file__).resolve().parent
    as_root = [] if os.getuid() == 0 else ["--map-root-user"]
    # A shell's children in the background have no standard input; they get its own, as 3.
    begin = "exec 3<&0; mount -t tmpfs none /dev/shm || exit"
    start = f'{sys.executable} -B -c "$0" $i <&3 &'
    child = subprocess.Popen(
        ["unshare", *as_root, "--mount", "sh", "-c",
         f"{begin}; for i in 1 2; do {start} done; wait", IN_CONTAINER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(here)})
    shown = [child.stdout.readline().strip() for _ in range(2)]
    if not all(shown):
        print(f"no mount namespace to be had, so no container: {child.communicate()[1].strip()}")
        return
    devices = [f"device H100 GPU-0 {1 << 30} 1", f"process 0 {child.pid} 5",
               *(f"process 0 {process} 5" for process in shown)]
    told = export(where, devices=devices)
    assert sorted(text.find(told, "process_reserved_bytes", name="guest")) == [1, 2], told
    assert {dict(keys)["process"] for keys in told["drystone_process_reserved_bytes"]} == set(shown)
    assert text.one(told, "exporter_pages") == 2
    assert text.one(told, "exporter_sources_left_out") == 0
    child.communicate("")


def check_refusals():
    for words in (["--metrics", "x"], ["--listen", "127.0.0.1:0", "x"],
                  ["--once", "--listen", "127.0.0.1:0"], ["--metrics", "--json"],
                  ["--metrics", "--at-used", "95%"], ["--listen", "127.0.0.1:0", "--metrics"],
                  ["--lanes", "3"], ["--processes-max", "3"], ["--metrics", "--lanes", "49"],
                  ["--metrics", "--lanes", "-1"], ["--metrics", "--processes-max", "0"],
                  ["--metrics", "--processes-max", "4097"]):
        done = subprocess.run([tool, "live", *words], capture_output=True, check=False)
        assert done.returncode == 2 and done.stderr, done


def main():
    if not shutil.which("promtool"):
        print("SKIPPED in part: promtool (Debian: prometheus) is not installed: its lint is not asked")
    try:
        for check in (check_figures, check_pinned, check_devices, check_hostile_texts,
                      check_random_texts, check_bounds, check_lanes, check_refused, check_ended,
                      check_container, check_refusals):
            check()
    finally:
        shutil.rmtree(work)


main()
