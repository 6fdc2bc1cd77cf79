#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The seam in C says what its pools are, without PyTorch and without a GPU: configure.py LIBRARY

Every call is made in a process of its own, for a process has one choice.
"""
import subprocess
import sys

CALLS = """
import ctypes, sys
plug = ctypes.CDLL(sys.argv[1])
plug.drystone_plug_configure.restype = ctypes.c_char_p
for words in sys.argv[2:]:
    said = plug.drystone_plug_configure(*(word.encode() for word in words.split("|")))
    print(said.decode() if said else "yes")
"""
OTHER = "drystone's pools are in use with another placement or conf, and a process has one of each"
CASES = [
    (["paged||"], ["yes"]),
    (["torch||"], ["yes"]),
    (["paged|budget:1.2,plan:False|", "paged|budget:1.2,plan:False|"], ["yes", "yes"]),
    (["torch|expandable_segments:True|2.8"], ["yes"]),
    (["page||"], ['placement is "paged" or "torch"']),
    (["||"], ['placement is "paged" or "torch"']),
    (["paged|budgt:1|"], ["conf: option 'budgt:1': not one of this allocator"]),
    (["torch|max_split_size_mb:1|"],
     ["conf: CachingAllocator option max_split_size_mb too small, must be >= 20, got 1"]),
    (["torch||9.9"], None),
    (["paged|budgt:1|", "torch||2.15"], ["conf: option 'budgt:1': not one of this allocator", "yes"]),
    (["paged||", "torch||"], ["yes", OTHER]),
    (["paged||", "paged|budget:1.2|"], ["yes", OTHER]),
    (["paged||2.8", "paged||2.9"], ["yes", OTHER]),
]

failed = 0
for calls, expected in CASES:
    done = subprocess.run([sys.executable, "-c", CALLS, sys.argv[1], *calls], capture_output=True,
                          text=True, check=False)
    said = done.stdout.splitlines()
    if done.returncode != 0 or (said != expected if expected else said == ["yes"]):
        failed += 1
        print(f"{calls}: {said}, expected {expected}\n{done.stderr}")
sys.exit(failed != 0)
