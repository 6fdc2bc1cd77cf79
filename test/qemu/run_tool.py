#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone run` on a Linux of two nodes: run_tool.py KERNEL TOOL STARTER

Programs are bound to nodes and hold memory; some do not as they are told, and for one the node
is too small. Each time the proof must say what is so. Ends with 77 where run.py would.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import run as machine

RUN = "drystone run --prove --strict --malloc glibc"
# A command, how it ends, and rows that its proof must have: verdict, name, words.
CASES = [
    (f"{RUN} --node 1 hold 200 3000", 0, [
        ("set", "CPUs", "1"), ("set", "memory", "prefer 1"), ("proven", "CPUs", "on 1"),
        ("proven", "memory", "lies on node 1"), ("proven", "malloc", ""),
        ("proven", "huge pages", "of 20"), ("proven", "variables", "")]),
    (f"{RUN} --node 0 --membind strict hold 200 3000", 0, [
        ("set", "memory", "only 0"), ("proven", "CPUs", "on 0"),
        ("proven", "memory", "lies on node 0")]),
    (f"{RUN} --node 1 --interleave hold 200 3000", 0, [
        ("set", "memory", "interleave 0-1"), ("proven", "memory", "nodes 0-1")]),
    (f"{RUN} --node 1 --thp never hold 100 3000", 0, [
        ("set", "huge pages", "off"), ("proven", "huge pages", "0 %")]),
    (f"{RUN} --node 1 hold 200 3000 leave", 1, [
        ("NOT SO", "CPUs", "may run on 0-1"), ("proven", "memory", "lies on node 1")]),
    (f"{RUN} --node 1 hold 900 3000", 1, [
        ("proven", "CPUs", "on 1"), ("NOT SO", "memory", "lies on node 1")]),
    ("drystone run -q --node 1 drystone run --malloc keep --dry-run", 0, [
        ("kept", "CPUs", "node 1, the only one"), ("kept", "memory", "a memory policy")]),
    ("drystone run --node 2 hold 1 1", 4, []),
]


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return re.findall(r"(/\S+)", listed.stdout)


def initramfs(tool, starter):
    files = {"bin/drystone": tool, "bin/hold": starter, "init": starter}
    files |= {path.lstrip("/"): path for path in libraries(tool)}
    data = {name: pathlib.Path(path).read_bytes() for name, path in files.items()}
    data["commands"] = "".join(f"{case[0]}\n" for case in CASES).encode()
    folders = {str(folder) for name in data for folder in pathlib.PurePath(name).parents}
    folders = sorted((folders | {"proc", "sys", "dev"}) - {"."})
    return b"".join([machine.cpio_entry(name, 0o040755) for name in folders] +
                    [machine.cpio_entry(name, 0o100755, text) for name, text in data.items()] +
                    [machine.cpio_entry("TRAILER!!!", 0)])


def boot(kernel, tool, starter):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "initrd"
        path.write_bytes(initramfs(tool, starter))
        try:
            done = subprocess.run(machine.command(kernel, str(path)), timeout=1800,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            return done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode(errors="replace") + "\nit did not end"


def has_row(text, row):
    verdict, name, words = row
    return any(line.startswith(f"  {verdict}") and name in line and words in line
               for line in text.splitlines())


def main():
    kernel, tool, starter = sys.argv[1:]
    if not shutil.which(machine.QEMU):
        machine.skip(f"there is no {machine.QEMU}")
    if not pathlib.Path(kernel).exists():
        machine.skip(f"there is no kernel {kernel} (./dev test gets one)")
    text = boot(kernel, tool, starter).replace("\r", "")
    print(text)
    failed = 0 if "\n== over\n" in text else 1
    for command, code, rows in CASES:
        part = text.partition(f"== {command}\n")[2].partition("== exit ")
        missing = [row for row in rows if not has_row(part[0], row)]
        if part[2].split("\n")[0] != str(code) or missing:
            print(f"FAILED: {command}: wanted exit {code}, and {missing}")
            failed += 1
    sys.exit(failed != 0)


main()
