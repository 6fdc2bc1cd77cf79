#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what doctor reads of a machine as a text for test/data/machines:
capture_machine.py [ROOT] > NAME.txt

Left out is what names a person, a host or a program: of the command line only the options
that matter here are kept, of mounts and groups only where limits lie, of limits the least.
Look at it before you share it.
"""
import pathlib
import re
import sys

FILES = """
proc/buddyinfo proc/pagetypeinfo proc/cmdline proc/cpuinfo proc/meminfo proc/vmstat
proc/self/cgroup proc/self/limits proc/self/mountinfo proc/self/status
proc/driver/nvidia/params proc/driver/nvidia/version
proc/sys/kernel/numa_balancing proc/sys/kernel/osrelease
proc/sys/vm/compaction_proactiveness proc/sys/vm/extfrag_threshold
proc/sys/vm/hugetlb_optimize_vmemmap proc/sys/vm/max_map_count proc/sys/vm/min_free_kbytes
proc/sys/vm/overcommit_memory proc/sys/vm/overcommit_ratio proc/sys/vm/swappiness
proc/sys/vm/zone_reclaim_mode
sys/devices/system/cpu/online sys/devices/system/cpu/cpu*/topology/core_cpus_list
sys/devices/system/node/has_cpu sys/devices/system/node/has_memory
sys/devices/system/node/online sys/devices/system/node/node*/cpulist
sys/devices/system/node/node*/distance sys/devices/system/node/node*/meminfo
sys/devices/system/node/node*/numastat
sys/devices/system/node/node*/hugepages/hugepages-*kB/*_hugepages
sys/kernel/iommu_groups/0/type
sys/kernel/mm/hugepages/hugepages-*kB/*
sys/kernel/mm/transparent_hugepage/* sys/kernel/mm/transparent_hugepage/khugepaged/*
sys/kernel/mm/transparent_hugepage/hugepages-*kB/*enabled
""".split()
# Of these files, the lines that match.
LINES = {
    "proc/cpuinfo": r"^(processor|flags|Features)\b",
    "proc/meminfo": r"^(Mem|Swap(Total|Free)|HugePages_|Hugepagesize|(Ina|A)ctive\(file\)"
                    r"|SReclaimable)",
    "proc/self/limits": r"^(Limit|Max (open files|locked memory|address space))",
    "proc/self/mountinfo": r" /dev/shm ",
    "proc/self/status": r"^(THP_enabled|Cpus_allowed_list|Mems_allowed_list)",
    "proc/vmstat": r"^(thp_fault_|compact_(stall|fail|success)|htlb_)",
    "proc/driver/nvidia/params": r"^InitializeSystemMemoryAllocations",
    "proc/driver/nvidia/version": r"^NVRM version",
}
OPTIONS = r"(default_hugepagesz|hugepagesz|hugepages|init_on_alloc|iommu|intel_iommu)="
GROUP_FILES = ["memory.max", "memory.high", "memory.current", "memory.swap.max", "cpu.max"]


def read(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def keep_lines(text, pattern):
    return "".join(line + "\n" for line in text.splitlines() if re.search(pattern, line))


def clean(name, text):
    if name == "proc/cmdline":
        return " ".join(w for w in text.split() if re.match(OPTIONS, w)) + "\n"
    if name == "proc/sys/kernel/osrelease":
        return re.match(r"[\d.]*", text)[0] + "\n"
    if name == "proc/self/cgroup":
        return "0::/\n"
    text = keep_lines(text, LINES[name]) if name in LINES else text
    if name == "proc/self/mountinfo":
        text += "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    return text


def least(texts):
    """The text with the smallest number; "max" is more than any."""
    return min(texts, key=lambda t: float("inf") if t.startswith("max") else int(t.split()[0]))


def groups(root):
    """Limits of this process's group and those above, of version 2, as if of one group."""
    own = re.search(r"^0::/(.*)$", read(root / "proc/self/cgroup") or "", re.M)
    folder = root / "sys/fs/cgroup" / own[1] if own else None
    found = {}
    while folder and folder != root / "sys/fs":
        for name in GROUP_FILES + [p.name for p in folder.glob("hugetlb.*.max")]:
            text = read(folder / name)
            if text and re.match(r"\d|max", text):
                found.setdefault(name, []).append(text)
        folder = folder.parent
    for name, texts in found.items():
        yield f"sys/fs/cgroup/{name}", texts[0] if name == "memory.current" else least(texts)


def devices(root):
    """GPUs alone: a display or 3D controller."""
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        if (read(folder / "class") or "").startswith("0x03"):
            for name in ["class", "vendor", "device", "numa_node", "local_cpulist",
                         "resource"]:
                yield f"sys/bus/pci/devices/{folder.name}/{name}", read(folder / name)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/")
    found = dict(groups(root))
    found.update(devices(root))
    for pattern in FILES:
        for path in root.glob(pattern):
            text = read(path) if path.is_file() else None
            if text:
                name = str(path.relative_to(root))
                found[name] = clean(name if name in LINES or "*" not in pattern else "", text)
    for name in sorted(found):
        if found[name]:
            sys.stdout.write(f"== /{name}\n{found[name].rstrip()}\n")


if __name__ == "__main__":
    main()
