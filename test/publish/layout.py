#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The structs of drystone._live, and of the tests' pages, are those of the header: layout.py LAYOUT

LAYOUT is the program of layout.c.
"""
import ctypes
import json
import subprocess
import sys

import reader
import pages
from drystone import _live

STRUCTS = [("dry_live_options", _live.Options), ("dry_live_figures", _live.Figures),
           ("dry_live_lane", _live.Lane), ("dry_live_line", _live.Line),
           ("dry_live_detail", _live.Detail), ("dry_live_figures", pages.Figures),
           ("dry_live_lane", pages.Lane), ("dry_live_line", pages.Line),
           ("dry_live_detail", pages.Detail), ("dry_live_source", pages.Source),
           ("dry_live_program", pages.Program), ("dry_live_answer", reader.Answer)]

said = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True).stdout)
wrong = []
constants = {"kinds": [_live.PINNED, _live.OTHER], "lanes": _live.LANES_MAX,
             "lines": _live.LINES_MAX, "text": _live.TEXT_BYTES, "path": _live.PATH_BYTES}
if said["constants"] != constants:
    wrong.append(f"constants: {said['constants']} in C, {constants} in Python")
for name, kind in STRUCTS:
    there = said[name]
    here = {"size": ctypes.sizeof(kind)}
    here.update((member, getattr(kind, member).offset) for member in there if member != "size")
    if here != there:
        wrong.append(f"{name}: {there} in C, {here} in Python")
    in_c = set(there) | {"struct_size", "pool_a", "pool_b"}
    missing = [field[0] for field in kind._fields_ if field[0] not in in_c]
    if missing:
        wrong.append(f"{name}: C was not asked for {missing}")
print("\n".join(wrong) or f"{len(STRUCTS)} structs are the same")
sys.exit(1 if wrong else 0)
