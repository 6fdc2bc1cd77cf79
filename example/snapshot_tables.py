#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A memory snapshot in Python: the verdict, who holds the memory, and a question of one's own.

    snapshot_tables.py snapshot.pickle

The question: which lines allocate the most bytes over the whole recording, whether or not they
keep them? Plain Python answers it here. With a data frame it is

    import duckdb
    events = drystone.open("snapshot.pickle").events
    duckdb.sql("SELECT stack, sum(size) FROM events WHERE action = 'alloc' GROUP BY stack")
"""
import collections
import sys

import drystone

GIB = 1 << 30


def line_of(snapshot, stack):
    """The innermost Python frame of a stack, as text."""
    for frame in snapshot.stack(stack):
        if frame.file and frame.file.endswith(".py"):
            return f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.name}"
    return "(no Python)"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        snapshot = drystone.open(sys.argv[1])
        verdict, top = snapshot.explain(), snapshot.top(rows=3)
    except drystone.Error as why:
        sys.exit(f"snapshot_tables.py: {why}")

    print(f"verdict: {verdict.verdict}, at the {verdict.moment.kind}")
    print(f"alive then: {top.active_bytes / GIB:.3f} GiB in {top.count} allocations")
    for owner in top.owners:
        print(f"  {owner.bytes / GIB:8.3f} GiB  {owner.name}")

    events = snapshot.events.columns
    by_stack, by_line = collections.Counter(), collections.Counter()
    for action, size, stack in zip(events["action"], events["size"], events["stack"]):
        if action == "alloc":
            by_stack[stack] += size
    for stack, size in by_stack.items():
        by_line[line_of(snapshot, stack)] += size
    print("allocated over the recording:")
    for line, size in by_line.most_common(3):
        print(f"  {size / GIB:8.3f} GiB  {line}")


if __name__ == "__main__":
    main()
