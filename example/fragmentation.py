#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fragmentation experiment: the same step again and again, and one that changes its size.

    python3 example/fragmentation.py

A step allocates what layers save and frees it in reverse order. With batches of one length the
allocator finds every block again; with lengths that change, and now and then a small tensor that
stays, blocks of the wrong size pile up. Each trace is replayed by `drystone replay` under
settings of PyTorch and by Drystone's own allocator; no PyTorch is needed.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

SETTINGS = [("default", ["--conf", ""]),
            ("expandable_segments", ["--conf", "expandable_segments:True"]),
            ("roundup_power2_divisions:8", ["--conf", "roundup_power2_divisions:8"]),
            ("drystone's own", ["--place", "paged"])]
MIB = 1 << 20


class Trace:
    """Lines of a plain trace, see drystone-trace(5)."""

    def __init__(self):
        self.lines, self.count = [], 0

    def alloc(self, size):
        self.count += 1
        self.lines.append(f"a {self.count} {size} 0 {len(self.lines)}")
        return self.count

    def free(self, number):
        self.lines.append(f"f {number} 0 0 {len(self.lines)}")


def step(trace, length, layers, width):
    """What autograd saves for a layer: some of bsh, one of s*s."""
    held = []
    for _ in range(layers):
        for size in (length * width * 2, length * width * 8, length * length * 8):
            held.append(trace.alloc(size))
        scratch = trace.alloc(length * width * 8)
        trace.free(scratch)
    for number in reversed(held):
        gradient = trace.alloc(length * width * 2)
        trace.free(number)
        trace.free(gradient)


def make_trace(lengths, layers, width, leak_every):
    trace = Trace()
    for index, length in enumerate(lengths):
        step(trace, length, layers, width)
        if leak_every and index % leak_every == 0:
            trace.alloc(1536 * 1024)  # a statistic that somebody keeps
    return "\n".join(trace.lines) + "\n"


def replay(text, words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "steps.trace")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([os.environ.get("DRYSTONE", "drystone"), "replay", "--json",
                               *words, path], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)["runs"][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    one = [1024] * args.steps
    many = [rng.randrange(256, 1025, 8) for _ in range(args.steps)]
    many[-1] = 1024
    for name, lengths, leak in (("one length", one, 0), ("lengths from 256 to 1024", many, 0),
                                ("the same, and a tensor that stays every 4 steps", many, 4)):
        text = make_trace(lengths, args.layers, 1024, leak)
        print(name)
        for setting, words in SETTINGS:
            run = replay(text, words)
            reserved, asked = run["reserved_peak_bytes"], run["requested_peak_bytes"]
            print(f"  {setting:<28}{reserved / MIB:>9.1f} MiB reserved"
                  f"{100 * (reserved / asked - 1):>8.1f} % above the tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
