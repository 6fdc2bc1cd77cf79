#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `drystone run` decides, on machines that are folders of files: run.py [--update] TOOL

Each case is a machine, libraries, variables and options; what --dry-run prints is compared
with run.expected.
"""
import difflib
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

EXPECTED = pathlib.Path(__file__).with_name("run.expected")
update = sys.argv[1] == "--update"
tool = pathlib.Path(sys.argv[-1]).resolve()
libc = platform.libc_ver()
if libc[0] != "glibc" or tuple(map(int, libc[1].split("."))) < (2, 35):
    print(f"SKIPPED: the plans are those of glibc 2.35 and newer, this is {libc}")
    sys.exit(77)

NODE = "sys/devices/system/node"
CPU = "sys/devices/system/cpu"


def machine(nodes, cores, threads=1, memory=None, allowed=None, mems=None, gpus=(),
            thp="always [madvise] never", more=None):
    """Nodes of so many cores each; CPU-less ones are those of `memory` beyond `nodes`."""
    memory = memory or nodes
    count = nodes * cores * threads
    files = {
        f"{NODE}/online": f"0-{memory - 1}",
        f"{NODE}/has_memory": f"0-{memory - 1}",
        f"{CPU}/online": f"0-{count - 1}",
        "proc/self/status": f"Cpus_allowed_list:\t{allowed or f'0-{count - 1}'}\n"
                            f"Mems_allowed_list:\t{mems or f'0-{memory - 1}'}",
        "sys/kernel/mm/transparent_hugepage/enabled": thp,
    }
    for node in range(memory):
        own = [f"{node * cores + t * nodes * cores}-{(node + 1) * cores - 1 + t * nodes * cores}"
               for t in range(threads)] if node < nodes else []
        files[f"{NODE}/node{node}/cpulist"] = ",".join(own)
        files[f"{NODE}/node{node}/distance"] = " ".join(
            "10" if node == other else "32" if abs(node - other) > 1 else "21"
            for other in range(memory))
        files[f"{NODE}/node{node}/meminfo"] = f"Node {node} MemTotal: 67108864 kB"
    for cpu in range(count):
        first = cpu % (nodes * cores)
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = ",".join(
            str(first + t * nodes * cores) for t in range(threads))
    for i, node in enumerate(gpus):
        at = f"sys/bus/pci/devices/0000:{0x10 + i:02x}:00.0"
        files |= {f"{at}/class": "0x030200", f"{at}/vendor": "0x10de",
                  f"{at}/device": "0x2330", f"{at}/numa_node": str(node)}
    return files | (more or {})


LIMITED = {
    "proc/self/cgroup": "0::/",
    "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    "sys/fs/cgroup/cpu.max": "250000 100000",
}
MACHINES = {
    "laptop": machine(1, 4, threads=2),
    "server": machine(2, 8, threads=2, gpus=(0, 0, 1, 1)),
    "eight": machine(8, 4, gpus=(0, 2, 4, 6)),
    "cxl": machine(2, 4, memory=3),
    "container": machine(2, 8, allowed="8-11", mems="1", more=LIMITED),
    "vm": machine(2, 4, gpus=(-1, -1)),
    "never": machine(1, 4, thp="always madvise [never]"),
    "always": machine(1, 4, thp="[always] madvise never"),
    "bare": {"proc/self/status": "Cpus_allowed_list:\t0-3"},
}

HEAD = open("/proc/self/exe", "rb").read(64)  # of this machine's kind
ELF = HEAD[:16] + (3).to_bytes(2, sys.byteorder) + HEAD[18:]  # a shared object
ALIEN = ELF[:18] + (1).to_bytes(2, sys.byteorder) + ELF[20:]  # for another processor
OLD = ELF + bytes(100) + b"\0005.3.0-0-g54eaed1d8b56\0"
NEW = ELF + bytes(70000) + b"\0005.3.1-0-g81034ce1f1\0"
DEBIAN = {"usr/lib/x86_64-linux-gnu/libjemalloc.so.2": OLD,
          "usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4": ELF,
          "usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4.5.10": ELF,
          "usr/lib/x86_64-linux-gnu/libtcmalloc.so.4": ELF,
          "usr/lib/x86_64-linux-gnu/libtcmalloc_minimal_debug.so.4": ELF}
CONDA = {"opt/conda/lib/libjemalloc.so.2": NEW, "opt/conda/lib/libjemalloc.so": NEW}
PIP = {"srv/venv/lib/python3.12/site-packages/fast.libs/libjemalloc-1f2e3d4c.so.2": NEW,
       "srv/venv/lib/python3.12/site-packages/tensors/lib/libtcmalloc.so.4": ELF}
USELESS = {"usr/lib64/libjemalloc.so.2": ALIEN, "usr/lib64/libtcmalloc.so.4": b"a script",
           "opt/a b/lib/libmimalloc.so.2": ELF, "usr/lib/libjemalloc_helper.so": NEW,
           "usr/lib/libtcmalloc.so.old": ELF}

HOOK = str(pathlib.Path(__file__).resolve().parents[2] / "python/drystone/torch/hook")
SHORT = "--malloc keep --thp keep --omp-threads keep --json "  # lines break by the length of paths

CASES = [  # machine, libraries, variables, options
    ("laptop", {}, {}, ""),
    ("laptop", DEBIAN, {}, ""),
    ("laptop", DEBIAN, {}, "--malloc jemalloc --profile throughput"),
    ("laptop", DEBIAN, {}, "--malloc jemalloc --profile many-workers --thp never"),
    ("laptop", DEBIAN, {}, "--malloc tcmalloc --profile many-workers"),
    ("laptop", DEBIAN, {}, "--profile many-workers"),
    ("laptop", DEBIAN, {}, "--malloc keep --thp keep --omp-threads keep"),
    ("laptop", {}, {}, "--malloc glibc --profile throughput --omp-threads 3"),
    ("laptop", {}, {}, "--malloc jemalloc"),
    ("laptop", USELESS, {"VIRTUAL_ENV": "/opt/a b"}, "--malloc mimalloc"),
    ("laptop", USELESS, {"VIRTUAL_ENV": "/opt/a b"}, ""),
    ("laptop", DEBIAN | CONDA, {"CONDA_PREFIX": "/opt/conda"}, ""),
    ("laptop", DEBIAN | PIP, {"VIRTUAL_ENV": "/srv/venv"}, "--profile throughput"),
    ("laptop", DEBIAN | PIP, {"VIRTUAL_ENV": "/srv/venv"}, "--malloc tcmalloc"),
    ("laptop", {"opt/x/libmimalloc.so.2": ELF}, {"LD_LIBRARY_PATH": "x::/opt/x:/opt/y"},
     "--malloc mimalloc --profile throughput"),
    ("laptop", DEBIAN, {"LD_PRELOAD": "/x/libiomp5.so /y/libjemalloc.so.2"},
     "--malloc tcmalloc --omp-bind"),
    ("laptop", DEBIAN, {"LD_PRELOAD": "/x/libiomp5.so", "OMP_NUM_THREADS": "5",
                        "THP_MEM_ALLOC_ENABLE": "0"}, ""),
    ("laptop", DEBIAN, {"MALLOC_CONF": "dirty_decay_ms:0"}, "--malloc jemalloc"),
    ("laptop", {}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1:glibc.cpu.x=2",
                    "MALLOC_TRIM_THRESHOLD_": "7"}, ""),
    ("laptop", {}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1:"
                    "glibc.malloc.trim_threshold=1:glibc.malloc.hugetlb=0"}, ""),
    ("laptop", {}, {"GLIBC_TUNABLES": "x" * 4096}, ""),
    ("server", {}, {}, ""),
    ("server", {}, {}, "--node gpu:2"),
    ("server", {}, {}, "--node gpu:3 --membind strict --omp-bind"),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": "2,3"}, ""),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": "1,2"}, ""),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": "1,2", "LOCAL_RANK": "1"}, ""),
    ("server", {}, {"LOCAL_RANK": "0"}, ""),
    ("server", {}, {"LOCAL_RANK": "99"}, ""),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": "GPU-0a1b"}, ""),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": "7"}, ""),
    ("server", {}, {"CUDA_VISIBLE_DEVICES": ""}, ""),
    ("server", {}, {}, "--membind strict"),
    ("laptop", {}, {}, "--membind strict --malloc keep"),
    ("server", {}, {}, "--node 1 --interleave"),
    ("server", {}, {}, "--node none --interleave"),
    ("server", {}, {}, "--node none"),
    ("server", {}, {}, "--node 2"),
    ("server", {}, {}, "--node gpu:4"),
    ("server", {}, {}, "--node gpu:"),
    ("server", {}, {}, "--node -1"),
    ("server", {}, {}, "--interleave --membind strict"),
    ("eight", {}, {}, "--node gpu:3"),
    ("eight", {}, {}, "--node 5 --profile many-workers"),
    ("cxl", {}, {}, "--node 2"),
    ("cxl", {}, {}, "--node 2 --membind strict"),
    ("cxl", {}, {}, ""),
    ("container", {}, {}, ""),
    ("container", {}, {}, "--node 0"),
    ("vm", {}, {}, ""),
    ("vm", {}, {}, "--node gpu:1"),
    ("never", {}, {}, ""),
    ("always", DEBIAN, {}, ""),
    ("bare", {}, {}, ""),
    ("laptop", {}, {}, SHORT + "--allocator paged"),
    ("laptop", {}, {"PYTHONPATH": "/a:/b", "DRYSTONE": "/opt/drystone"},
     SHORT + "--allocator torch --allocator-conf max_split_size_mb:64 --on-oom oom-{rank}.pickle"),
    ("laptop", {}, {"PYTHONPATH": HOOK + ":/a", "DRYSTONE_ALLOCATOR": "torch"},
     SHORT + "--on-oom oom.pickle"),
    ("laptop", {}, {"PYTHONPATH": "x" * 4096}, "--allocator paged"),
    ("laptop", {}, {"PYTHONPATH": ""}, SHORT + "--allocator paged --allocator-conf budget:1.2"),
    ("laptop", {}, {}, "--allocator page"),
    ("laptop", {}, {}, "--allocator paged --allocator-conf budgt:1.2"),
    ("laptop", {}, {}, "--allocator torch --allocator-conf max_split_size_mb:1"),
    ("laptop", {}, {}, "--allocator-conf budget:1.2"),
    ("laptop", {}, {}, "--on-oom="),
    ("laptop", {}, {}, SHORT + "--watch"),
    ("laptop", {}, {"DRYSTONE_WATCH": "/mem"}, "--watch --allocator paged"),
]


def run(case):
    name, libraries, variables, options = case
    with tempfile.TemporaryDirectory() as root:
        for path, text in (MACHINES[name] | libraries).items():
            file = pathlib.Path(root) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode() + b"\n")
        done = subprocess.run(
            [tool, "run", "--dry-run", "--root", root, *options.split()], text=True,
            env={"PATH": os.environ["PATH"]} | variables, stdin=subprocess.DEVNULL,
            capture_output=True)
    said = "".join(line for line in done.stderr.splitlines(True)
                   if not line.startswith("ERROR: ld.so"))  # what is preloaded is not there
    shown = " ".join(f"{key}={value if len(value) < 100 else '...'}"
                     for key, value in variables.items())
    where = " ".join(sorted({path.rsplit("/", 1)[0] for path in libraries}))
    text = (f"$ drystone run {options}\n# {name}; {where or 'no libraries'}; "
            f"{shown or 'no variables'}\n{done.stdout}{said}exit {done.returncode}\n")
    return text.replace(HOOK, "HOOK").replace(str(tool), "TOOL")


now = "\n".join(map(run, CASES))
if update:
    EXPECTED.write_text(now)
elif now != EXPECTED.read_text():
    sys.stdout.writelines(difflib.unified_diff(
        EXPECTED.read_text().splitlines(True), now.splitlines(True), "expected", "now"))
    sys.exit(1)
