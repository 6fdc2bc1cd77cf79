# SPDX-License-Identifier: Apache-2.0
"""Tells whether a program that makes no new peak does work that ends by itself.

Such work loads, compiles or waits for processes that do: the main thread runs functions that
were never seen before, or waits for a DataLoader; a thread runs a compiler's; files are read before
any module ran; processes below this one use a processor. A loop that waits for a number of the
device shows none of these for long.
"""
import os
import sys
import threading

# Modules that run while something is imported or compiled, and not when the result is called.
COMPILERS = ("importlib._bootstrap", "torch._dynamo.convert_frame", "torch._inductor.graph",
             "torch._inductor.scheduler", "torch._inductor.codecache", "triton.runtime.build",
             "torch._inductor.async_compile", "torch._inductor.compile_fx",
             "triton.compiler.compiler")
LOADER = "torch.utils.data.dataloader"
READ_MIN = 1 << 20  # bytes between two looks
TICKS_MIN = 2  # processor ticks between two looks, often 0.02 s


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def find_below(process):
    """Return the processes that a process started, and those that they started."""
    found, waiting = [], [process]
    while waiting and len(found) < 1000:
        one = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        for thread in threads:
            children = read(f"/proc/{one}/task/{thread}/children").split()
            found += children
            waiting += children
    return found


def measure(process):
    """Return whether a process uses, or waits for, a processor or a disk, and its ticks so far."""
    fields = read(f"/proc/{process}/stat").rpartition(")")[2].split()
    if len(fields) <= 12:
        return False, 0
    return fields[0] in "RD", int(fields[11]) + int(fields[12])


def count_read():
    """Return the bytes that this process has read, and pages that came from files."""
    told = [line.split() for line in read("/proc/self/io").splitlines()]
    pages = read("/proc/self/stat").rpartition(")")[2].split()
    return sum(int(words[1]) for words in told if words[0] == "rchar:") + \
        (int(pages[9]) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 9 else 0)


class Life:
    def __init__(self):
        self.seen, self.read, self.ticks = set(), 0, {}

    def look(self, has_modules):
        """Tell whether there was a sign of life since the last look."""
        signs = [self.look_at_stacks(), self.look_below()]
        was, self.read = self.read, count_read()
        return any(signs) or (not has_modules and self.read - was >= READ_MIN)

    def look_at_stacks(self):
        main, is_alive = threading.main_thread().ident, False
        for thread, frame in sys._current_frames().items():
            while frame:
                name = frame.f_globals.get("__name__") or ""
                is_alive |= name in COMPILERS or (thread == main and name == LOADER)
                if thread == main and not name.startswith("_drystone"):
                    is_alive |= frame.f_code not in self.seen
                    self.seen.add(frame.f_code)
                frame = frame.f_back
        return is_alive

    def look_below(self):
        was, found = self.ticks, {one: measure(one) for one in find_below("self")}
        self.ticks = {one: ticks for one, (_, ticks) in found.items()}
        used = sum(ticks - was.get(one, 0) for one, ticks in self.ticks.items())
        return used >= TICKS_MIN or any(is_busy for is_busy, _ in found.values())
