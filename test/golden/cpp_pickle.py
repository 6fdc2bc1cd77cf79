# SPDX-License-Identifier: Apache-2.0
"""Pickle as PyTorch's C++ dumper does: torch.cuda._memory_snapshot_pickled().

Protocol 2 without frames; every list and dict is one MARK ... APPENDS or SETITEMS, however
long; strings are BINUNICODE and memoised by their text; other objects are memoised, after
they are filled, where they are used more than once; keys stand in another order than
Python's; integers are BININT1, BININT2, BININT or a LONG1 of eight bytes.
"""
import struct


def _count_uses(value, uses, keep):
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, (dict, list)):
            uses[id(item)] = uses.get(id(item), 0) + 1
            keep.append(item)
            if uses[id(item)] == 1:
                stack.extend(item.values() if isinstance(item, dict) else item)


class _Dumper:
    def __init__(self, write):
        self.write = write
        self.uses, self.keep = {}, []
        self.memo, self.memo_count = {}, 0

    def put(self, key):
        index = self.memo_count
        self.memo[key] = index
        self.memo_count += 1
        self.write(b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index))

    def get(self, key):
        index = self.memo[key]
        self.write(b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index))

    def dump(self, value):
        if isinstance(value, bool):
            self.write(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.dump_int(value)
        elif isinstance(value, float):
            self.write(b"G" + struct.pack(">d", value))
        elif isinstance(value, str):
            self.dump_str(value)
        elif isinstance(value, tuple):
            self.dump_tuple(value)
        else:
            self.dump_container(value)

    def dump_int(self, value):
        if 0 <= value < 256:
            self.write(b"K" + bytes([value]))
        elif 0 <= value < 65536:
            self.write(b"M" + struct.pack("<H", value))
        elif -2**31 <= value < 2**31:
            self.write(b"J" + struct.pack("<i", value))
        else:  # addresses above 2^63 wrap around, as in an int64_t
            self.write(b"\x8a\x08" + struct.pack("<Q", value & (2**64 - 1)))

    def dump_str(self, value):
        if value in self.memo:
            return self.get(value)
        data = value.encode()
        self.write(b"X" + struct.pack("<I", len(data)) + data)
        self.put(value)

    def dump_tuple(self, value):
        assert len(value) == 2
        for item in value:
            self.dump(item)
        self.write(b"\x86")

    def dump_container(self, value):
        if id(value) in self.memo:
            return self.get(id(value))
        if isinstance(value, dict):
            self.write(b"}")
            if value:
                self.write(b"(")
                for key in sorted(value, key=lambda k: (k[::-1], k)):
                    self.dump(key)
                    self.dump(value[key])
                self.write(b"u")
        else:
            self.write(b"]")
            if value:
                self.write(b"(")
                for item in value:
                    self.dump(item)
                self.write(b"e")
        if self.uses[id(value)] > 1:
            self.put(id(value))


def dump(value, file):
    file.write(b"\x80\x02")
    dumper = _Dumper(file.write)
    _count_uses(value, dumper.uses, dumper.keep)
    dumper.dump(value)
    file.write(b".")
