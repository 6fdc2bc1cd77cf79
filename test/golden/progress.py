#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long packing tells on a terminal how far it is, and nothing in a pipe: progress.py TOOL

The program has lives that no greedy order packs to the floor: a search follows that takes
seconds at least. It is interrupted once the line is there, which disappears then. Where no
terminal can be had, in a root without devpts, that half is skipped, and says so.
"""
import os
import pathlib
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

tool = pathlib.Path(sys.argv[1]).resolve()
LIMIT_S = 1800
LINE = b"packing, searches so far: "
WIPE = b"\r\x1b[K"


def write_program(path):
    random.seed(5)
    alive, lines = [], []
    for i in range(1, 401):
        lines.append(f"a {i} {random.randint(1, 3000) * 512} 0 {len(lines)}")
        alive.append(i)
        while len(alive) > random.randint(60, 80):
            lines.append(f"f {alive.pop(random.randrange(len(alive)))}")
    path.write_text("\n".join(lines) + "\n")


def start(path, errors):
    return subprocess.Popen([tool, "replay", path, "--place", "offline"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)


def read_until(file, word):
    """What comes up to the word; what there is when the file or the time ends."""
    text, end = b"", time.monotonic() + LIMIT_S
    while word not in text and time.monotonic() < end:
        if select.select([file], [], [], 1)[0]:
            try:
                part = os.read(file, 4096)
            except OSError:  # a terminal whose other side is closed
                break
            if not part:
                break
            text += part
    return text


def open_terminal():
    """Both its sides; None: there are none here."""
    try:
        return pty.openpty()
    except OSError as error:
        print(f"SKIPPED: what a terminal shows: {error}")
        return None


def try_terminal(path, terminal, inside):
    """How long it took until the line was there."""
    begin = time.monotonic()
    command = start(path, inside)
    os.close(inside)
    shown = read_until(terminal, LINE)
    took = time.monotonic() - begin
    command.send_signal(signal.SIGINT)
    printed, _ = command.communicate(timeout=LIMIT_S)
    rest = read_until(terminal, WIPE)
    assert LINE in shown and WIPE not in shown, shown
    assert rest.endswith(WIPE), rest
    assert command.returncode == -signal.SIGINT and printed == b"", printed
    return took


def cpu_seconds(process):
    """What a process that has not been waited for has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def try_pipe(path, took):
    """Let it work for longer than it took: a terminal would have had the line."""
    command = start(path, subprocess.PIPE)
    while command.poll() is None and cpu_seconds(command) < took + 0.5:
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=LIMIT_S)
    assert command.returncode in (-signal.SIGINT, 0), errors  # a fast machine may let it end
    assert errors == b"", errors


with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder) / "program.trace"
    write_program(program)
    sides = open_terminal()
    try_pipe(program, try_terminal(program, *sides) if sides else 5)
    sys.exit(0 if sides else 77)
