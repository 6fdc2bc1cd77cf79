# SPDX-License-Identifier: Apache-2.0
"""A reader of pages for tests, by ctypes over libdrystone ($DRYSTONE_LIBRARY)."""
import ctypes
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/golden/exporter")]
from drystone._call import CError, check, declare
from pages import Program, Source

U32, U64, I64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
POINTER = ctypes.c_void_p
LIMIT_S = 300


class Answer(ctypes.Structure):
    """struct dry_live_answer"""

    _fields_ = [("number", U64), ("result", I64), ("text", ctypes.c_char * 128)]


class Reader:
    """One page, open."""

    def __init__(self, folder, file):
        self._reader = POINTER()
        self._call("dry_live_open", str(folder).encode(), file.encode(), None,
                   ctypes.byref(self._reader))

    @staticmethod
    def _call(function, *given):
        err = CError()
        status = declare(function, *[POINTER] * (len(given) + 1))(*given, ctypes.byref(err))
        check(status, err)

    def close(self):
        declare("dry_live_close", POINTER, result=None)(self._reader)

    def program(self):
        get = declare("dry_live_get_program", POINTER, result=ctypes.POINTER(Program))
        return get(self._reader).contents

    def is_alive(self):
        process = U64()
        return declare("dry_live_is_alive", POINTER, POINTER, result=ctypes.c_bool)(
            self._reader, ctypes.byref(process))

    def sources(self):
        """{(kind, device): source}, each of one moment."""
        found = {}
        read = declare("dry_live_read", POINTER, U32, POINTER, POINTER)
        for number in range(declare("dry_live_count", POINTER, result=U32)(self._reader)):
            source, err = Source(), CError()
            check(read(self._reader, number, ctypes.byref(source), ctypes.byref(err)), err)
            found[source.kind, source.device] = source
        return found

    def later(self):
        """The same once every source, and its detail, is of now."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return wait(lambda: self._newer(now), "no new details")

    def _newer(self, now):
        found = self.sources()
        is_new = all(s.updated_ns > now and s.detail.at_ns > now for s in found.values())
        return found if found and is_new else None

    def request(self, path):
        """The answer to a request."""
        number, answer = U64(), Answer()
        self._call("dry_live_request", self._reader, str(path).encode(), ctypes.byref(number))

        def answered():
            self._call("dry_live_get_answer", self._reader, ctypes.byref(answer))
            return answer if answer.number == number.value else None

        return wait(answered, "no answer")

    def remove(self):
        self._call("dry_live_remove", self._reader)


def wait(look, what, said=str):
    """What look() returns once it returns something; said() tells more where it does not."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} within {LIMIT_S} s\n{said()[-3000:]}")


def pages(folder):
    """The names of pages in a folder."""
    return sorted(path.name for path in pathlib.Path(folder).glob("drystone-live-*"))
