#!/usr/bin/env python3
"""Show that a long command is alive: COMMAND 2>&1 | progress.py LABEL LOG

Reads what ninja, meson test, apt-get or the mutants print, keeps all of it in LOG, and shows
how far it is and how long it took so far: one moving line on a terminal, elsewhere a line every
ten seconds. Of tests only what did not pass is shown in full.
"""
import os
import re
import select
import sys
import time

EVERY_S = {True: 0.2, False: 10}
STEP = re.compile(r"\s*\[?(\d+)/(\d+)\]?\s+(.*)")
RESULT = re.compile(r"(.*?)\s+(OK|EXPECTEDFAIL|FAIL|SKIP|TIMEOUT|ERROR|UNEXPECTEDPASS)\b\s+[\d.]+s")
PACKAGE = re.compile(r"(Get:\d+|Unpacking|Setting up) (\S+)")
SUMMARY = re.compile(r"(Summary of Failures:|Ok: +\d+)")


class Line:
    """The one that moves."""

    def __init__(self, label):
        self.label, self.text, self.shown = label, "", False
        self.begin = self.last = time.monotonic()
        self.moves = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def tick(self, text=None):
        """Called at every line read, and now and then where none comes."""
        self.text = text or self.text
        now = time.monotonic()
        if now - self.last < EVERY_S[self.moves]:
            return
        self.last = now
        seconds = int(now - self.begin)
        line = f"   {self.label} {seconds // 60}:{seconds % 60:02}  {self.text}"[:79]
        print(f"\r\x1b[K{line}" if self.moves else line, end="" if self.moves else "\n", flush=True)
        self.shown = self.moves

    def wipe(self):
        if self.shown:
            print("\r\x1b[K", end="", flush=True)
            self.shown = False

    def say(self, text):
        self.wipe()
        print(text, flush=True)


def handle(line, text, state):
    if SUMMARY.match(text):
        state["summary"] = True
    step, package = STEP.match(text), PACKAGE.match(text)
    if step:
        result = RESULT.match(step[3])
        name = (result[1] if result else step[3]).split("/")[-1].strip()
        line.tick(f"{step[1]} of {step[2]}  {name}")
        passed = not result or result[2] in ("OK", "EXPECTEDFAIL")
        state["failing"] = bool(result) and not passed and result[2] != "SKIP"
        if not passed:
            line.say("   " + text.strip())
    elif package:
        line.tick(text.strip())
    elif state["failing"] and not state["summary"]:
        line.say(text)


def lines(line):
    """Those of standard input, with a tick now and then while none comes."""
    rest = b""
    while True:
        ready, _, _ = select.select([0], [], [], EVERY_S[line.moves])
        if not ready:
            line.tick()
            continue
        more = os.read(0, 1 << 16)
        if not more:
            break
        *whole, rest = (rest + more).split(b"\n")
        yield from whole
    if rest:
        yield rest


def main():
    label, log = sys.argv[1:]
    line, state = Line(label), {"failing": False, "summary": False}
    with open(log, "wb") as kept:
        for raw in lines(line):
            kept.write(raw + b"\n")
            handle(line, raw.decode(errors="replace"), state)
    line.wipe()


main()
