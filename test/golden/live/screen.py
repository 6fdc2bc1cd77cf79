#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The full screen of `drystone live`, driven in tmux: screen.py TOOL SHOW_PAGE NVML"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "view"))

from program import GIB, UNKNOWN, Machine  # noqa: E402
from terminal import Terminal, skip_without_terminals  # noqa: E402


class Screen(Terminal):
    def __init__(self, m, *words, **more):
        # tmux hands its environment on to what it starts.
        os.environ.update(m.environment())
        super().__init__(m.folder, m.words("--every", "0.1", *words), **more)

    def wait_gone(self, text):
        end = time.monotonic() + 60
        while any(text in line for line in self.screen()):
            assert time.monotonic() < end, self.screen()
            time.sleep(0.05)


def start(m):
    """Two programs with pages, the first with many lanes; one that the driver alone knows."""
    large, small = m.start("serve", rank=0, world=2), m.start("train.py", rank=1, world=2)
    for program, size in ((large, 60), (small, 2)):
        program.tell("source", "torch", 0, "GPU-a")
        program.tell("figures", 0, size * GIB, GIB, UNKNOWN, 3, 1)
    for i in range(20):
        large.tell("lane", 0, 100 + i, 0, 3 * GIB, 2 * GIB, 0, 0, GIB, GIB)
    large.tell("line", 0, GIB, 7, "first.py:1_forward")
    large.tell("line", 0, GIB, 7, "last.py:2_backward")
    m.devices("device NVIDIA_H100 GPU-a 85899345920 75161927680",
              f"process 0 {large.pid} 65000000000", f"process 0 {os.getpid()} 3000000000")
    return large, small


def check_walk(m, large, small):
    with Screen(m) as t:
        screen = t.wait_for("drystone live   1 device, 3 processes", "[?] keys", "NVIDIA H100",
                            "q quit")
        assert all(len(line) <= 80 for line in screen)
        assert len(screen) <= 25 and "serve" in screen[5] and screen[5].startswith(">"), screen
        assert screen[5].endswith("live") and any("seen" in line for line in screen)
        small.tell("figures", 0, 71 * GIB, GIB, UNKNOWN, 3, 1)  # it comes first; the choice stays
        screen = t.wait_for("71.0 GiB")
        assert "train.py" in screen[5] and screen[6].startswith(">") and "serve" in screen[6]
        t.press("Enter")
        screen = t.wait_for(f"{large.pid} serve, rank 0 of 2", "stranded", "20.00 GiB", "1 to 20 of")
        assert not any("last.py" in line for line in screen)
        t.press("End")
        t.wait_for("last.py:2 backward")
        t.press("Home")
        t.wait_for("1 to 20 of")
        large.tell("figures", 0, 61 * GIB, GIB, UNKNOWN, 4, 1)
        t.wait_for("61.00 GiB", "retries        4, out of memory 1")
        t.press("?")
        t.wait_for("ask the chosen process for a snapshot")
        t.press("Escape")
        t.press("Up")
        t.wait_for("enter shows")
        assert t.wait_for("train.py")[5].startswith(">")
        t.press("Enter")
        t.wait_for(f"{small.pid} train.py, rank 1 of 2", "its blocks were not walked yet")
        t.press("q")
        t.wait_for("ended 0")


def check_snapshot(m, small):
    with Screen(m, "--snapshot", m.folder, "train") as t:
        t.wait_for("train.py", ", train wanted")
        t.press("s")
        t.wait_for(f"{small.pid} train.py rank 1: asked for")
        [path] = small.tell("serve", 0, "42_MiB")
        assert path == f"{m.folder}/train.py-rank1-{small.pid}-1.pickle", path
        t.wait_for("snapshot written, 42 MiB")
        t.press("q")
        t.wait_for("ended 0")
    with Screen(m, "--at-used", "80%", "train") as t:
        t.wait_for("the limit is taken; no snapshot")
        t.press("q")
        t.wait_for("ended 0")


def check_sizes(m):
    with Screen(m, width=120, height=40) as t:
        t.wait_for("q quit", "serve ")
        for width, height in ((80, 24), (200, 50), (40, 10), (79, 23), (30, 6), (80, 24)):
            t.run("resize-window", "-x", str(width), "-y", str(height))
            screen = t.wait_for("drystone live", "PID" if height > 6 else "device")
            assert all(len(line) <= width for line in screen), (width, screen)
        t.wait_for("[?] keys", "q quit")
        t.press("Down", "Enter")
        t.wait_for("serve, rank 0 of 2")
        t.run("resize-window", "-x", "60", "-y", "15")
        t.wait_for("serve, rank 0 of 2", "1 to 11 of")
        t.press("q")
        t.wait_for("ended 0")


def check_plain(m, large):
    """Without UTF-8 and colours everything is ASCII; where no cursor moves, text is printed."""
    name = m.start("x" * 100)
    with Screen(m, term="vt100", lang="C") as t:
        screen = t.wait_for("q quit", "serve ", "x~x")
        assert all(line.isascii() for line in screen), screen
        t.press("Down", "Enter")
        t.wait_for(f"{large.pid} serve")
        t.press("q")
        t.wait_for("ended 0")
    with Screen(m, term="dumb") as t:
        screen = t.wait_for("processes", "serve ", "ended 0")
        assert not any("quit" in line for line in screen)
    name.end()


def check_many(m):
    """The chosen row stays on the screen."""
    programs = [m.start(f"many-{i}") for i in range(30)]
    with Screen(m) as t:
        t.wait_for("33 processes")
        t.press("End")
        t.wait_for("> ", "many-")
        t.wait_gone("serve ")
        t.press("PageUp", "Home")
        t.wait_for("serve ")
        for program in programs:
            program.end()
        t.wait_for("3 processes")
        t.press("q")
        t.wait_for("ended 0")


def check_hostile(m):
    program = m.start("evil\\x1b[2J\\x1b]0;title\\x07\\xe2\\x80\\xae")
    program.tell("source", "\\x1b[31m", 0, "-")
    program.tell("line", 0, 5, 1, "\\x1b[2Jevil_line")
    with Screen(m, "evil") as t:
        t.wait_for("> ", "evi")
        t.press("Enter")
        screen = t.wait_for("?[2Jevil line", "q quit")
        assert "\u202e" not in "".join(screen)
        program.send("serve", 5, "\\x1b[2Jno")
        t.press("s")
        program.wait_done()
        t.wait_for(": no snapsho", "q quit")
        t.press("q")
        t.wait_for("ended 0")
    program.end()


def check_ends(m, large, small):
    """A process that ends goes, and the terminal is left as it was."""
    with Screen(m) as t:
        t.wait_for("serve ", "train.py")
        large.end("kill")
        small.end()
        t.wait_gone("serve ")
        t.wait_gone("train.py")
        t.press("q")
        screen = t.wait_for("ended 0")
        assert not any("drystone live" in line for line in screen)


def main():
    skip_without_terminals()
    with Machine(*sys.argv[1:4]) as m:
        linked = subprocess.run(["ldd", m.tool], check=False, stdout=subprocess.PIPE, text=True)
        if "ncurses" not in linked.stdout:
            print("SKIPPED: ncurses was not found: there is no full screen to try")
            sys.exit(77)
        large, small = start(m)
        check_walk(m, large, small)
        check_snapshot(m, small)
        check_sizes(m)
        check_plain(m, large)
        check_many(m)
        check_hostile(m)
        check_ends(m, large, small)


main()
