#!/usr/bin/env python3
"""Boot a Linux of two nodes and run a static program in it: run.py KERNEL PROGRAM

The program is the whole system: an initramfs with nothing but it as /init. Ends with 77 (a
skip, to meson) where there is no qemu or no kernel. Without KVM, which is not everywhere and
hangs where it is nested; so nothing in it may be timed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
SECONDS_MAX = 280
QEMU = "qemu-system-x86_64"
# The initramfs is put below 2 GiB, the kernel (without KASLR) into the first MiBs: the GiB from
# 2 GiB on is whole, for the one page of that size.
NODES = [("0", "3200M"), ("1", "768M")]
# Where this machine has so much to spare, node 0 has room for 2,048 pages of 2 MiB more.
SPARE_MIB, LARGE_NODE = 10240, "7680M"
APPEND = ("console=ttyS0 panic=-1 quiet nokaslr hugepagesz=1G hugepages=0:1 "
          "hugepagesz=2M hugepages=0:128,1:128 transparent_hugepage=madvise")


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIP)


def cpio_entry(name, mode, data=b""):
    """One file of an archive in the format "newc" (cpio(5))."""
    name = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def initramfs(program):
    folders = b"".join(cpio_entry(f, 0o040755) for f in ["proc", "sys", "dev"])
    init = cpio_entry("init", 0o100755, pathlib.Path(program).read_bytes())
    return folders + init + cpio_entry("TRAILER!!!", 0)


def nodes_of_this_machine():
    text = pathlib.Path("/proc/meminfo").read_text()
    found = re.search(r"MemAvailable: +(\d+) kB", text)
    has_room = found and int(found.group(1)) // 1024 >= SPARE_MIB
    return [("0", LARGE_NODE)] + NODES[1:] if has_room else NODES


def command(kernel, initrd):
    nodes = nodes_of_this_machine()
    total = sum(int(size.rstrip("M")) for _, size in nodes)
    words = [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
             "-m", f"{total}M", "-nodefaults", "-no-user-config", "-display", "none",
             "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", initrd,
             "-append", APPEND]
    for node, size in nodes:
        words += ["-object", f"memory-backend-ram,id=m{node},size={size}",
                  "-numa", f"node,nodeid={node},memdev=m{node},cpus={node}"]
    return words


def boot(kernel, program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "initrd"
        path.write_bytes(initramfs(program))
        try:
            done = subprocess.run(command(kernel, str(path)), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=SECONDS_MAX, check=False)
            return done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode(errors="replace") + "\nit did not end"


def main():
    kernel, program = sys.argv[1:]
    if not shutil.which(QEMU):
        skip(f"there is no {QEMU}")
    if not pathlib.Path(kernel).exists():
        skip(f"there is no kernel {kernel} (./dev test gets one)")
    text = boot(kernel, program)
    print(text)
    lines = text.replace("\r", "").splitlines()
    passed = sum(line.startswith("ok ") for line in lines)
    failed = sum(line.startswith("not ok ") for line in lines)
    closing = f"# {passed} passed, {failed} failed"
    sys.exit(failed != 0 or passed == 0 or closing not in lines)


if __name__ == "__main__":
    main()
