# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: lines where unknown numbers decide a size or a branch.

Every question of a program about a whole number is noted with its innermost line outside of
torch and Python's library. A number that is only added up, divided or printed decides nothing.
What compares numbers in Python (_drystone_numbers.py) is noted where the line is the program's own.
"""
import dis
import functools
import os
import sys
import sysconfig

from _drystone_branches import decides

LINES_MAX = 100
HARMLESS = {"+=", "/", "/="}  # arguments of BINARY_OP; older Pythons have names for them
# Torch asks for a storage to save it, for a tensor's numbers to print them, and for the seed of a
# dropout: none decides anything.
HARMLESS_FILES = (os.path.join("torch", "serialization.py"),
                  os.path.join("torch", "_tensor_str.py"),
                  os.path.join("torch", "nn", "modules", "rnn.py"))
HARMLESS_NAMES = {"INPLACE_ADD", "BINARY_TRUE_DIVIDE", "INPLACE_TRUE_DIVIDE", "FORMAT_VALUE",
                  "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"}
ASSERTS = "LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"


@functools.lru_cache(maxsize=1000)
def is_harmless(code, offset):
    """Return whether the result of the call at this offset is only summed, divided or printed."""
    following = (one for one in dis.get_instructions(code)
                 if one.offset > offset and one.opname != "CACHE")
    then = next(following, None)
    return then is not None and (then.opname in HARMLESS_NAMES or
                                 (then.opname == "BINARY_OP" and then.argrepr in HARMLESS))


@functools.lru_cache(maxsize=1000)
def find_assert(code, offset):
    """Return what an assert at this offset wants to be told, True or False; None: there is none."""
    names = [one.opname for one in dis.get_instructions(code)
             if one.offset >= offset and one.opname != "CACHE"][:3]
    names = names[names[:1] == ["TO_BOOL"]:]
    is_one = len(names) > 1 and names[1] in ASSERTS
    return names[0].endswith("IF_TRUE") if is_one and "_IF_" in names[0] else None


class Guesses:
    def __init__(self, torch):
        places = os.path.dirname(torch.__file__), os.path.dirname(os.path.abspath(__file__))
        self.hidden = *(os.path.join(place, "") for place in places), "<"
        self.installed = os.path.join(os.path.dirname(places[0]), "")
        self.stdlib = os.path.join(sysconfig.get_paths()["stdlib"], "")
        self.counts, self.judged = {}, {}

    def is_theirs(self, name):
        is_installed = "site-packages" in name or "dist-packages" in name
        is_standard = name.startswith(self.stdlib) and not is_installed
        return not (name.startswith(self.hidden) or is_standard)

    def is_own(self, frame):
        """Return whether a frame is of the program, and of no package beside torch."""
        name = frame.f_code.co_filename
        if name.startswith("<"):
            return frame.f_globals.get("__name__") == "__main__"  # python -c
        return self.is_theirs(name) and not name.startswith(self.installed) and \
            "site-packages" not in name and "dist-packages" not in name

    def find_frame(self):
        """Return the innermost frame of the program; 0: what torch asks decides nothing."""
        frame = sys._getframe(2)
        while frame and not self.is_theirs(frame.f_code.co_filename):
            if frame.f_code.co_filename.endswith(HARMLESS_FILES):
                return 0
            frame = frame.f_back
        return frame

    def find_asserted(self):
        """Return what the program asserts of the number that it asks for; None: nothing."""
        frame = self.find_frame()
        return find_assert(frame.f_code, frame.f_lasti) if frame else None

    def add(self, what):
        """Note a question: a size for "nonzero" and "unique", a number for "item" and "copy"."""
        frame = self.find_frame()
        if frame == 0 or (frame and what == "item" and is_harmless(frame.f_code, frame.f_lasti)):
            return
        self.count(frame, what)

    def compare(self, frame, what="compare"):
        """Note a line of the program's own that asks about a number, if something follows from it.

        A line may also take a number ("float", "int") and ask later.
        """
        above = frame.f_back
        key = (frame.f_code, frame.f_lineno, what, above and above.f_code, above and above.f_lineno)
        if key not in self.judged:
            self.judged[key] = self.is_own(frame) and decides(frame, self.is_own, what)
        if self.judged[key]:
            self.count(frame, "item" if what == "int" else "compare")

    def count(self, frame, what):
        line = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}" \
            if frame else "backward pass"
        key = (line, what)
        if key in self.counts or len(self.counts) < LINES_MAX:
            self.counts[key] = self.counts.get(key, 0) + 1

    def get(self):
        return [{"line": line, "what": what, "count": count}
                for (line, what), count in self.counts.items()]
