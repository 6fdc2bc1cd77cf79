#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory is taken for what it is, in programs whose tensors are known.

    categories.py TOOL PRINT_CATEGORIES [--table] [--wrong]

Programs of categories/*.py run under a dry run and label their storages (categories/labels.py).
Each block that is alive at a mark is compared with what the library takes it for: once with the
stacks of Python, and once without any. What has no label is none of these: it is rightly a
temporary, or unknown; an activation, too, where the program saves nothing for a backward pass.
--table prints the tables for doc/benchmarks.md, --wrong each kind of mistake.

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py); without it all are skipped.
"""
import argparse
import collections
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

from needs import find_torch

HERE = pathlib.Path(__file__).resolve().parent
MARK_BYTES = 333_333  # labels.py
OTHER = "none of these"
KINDS = ("weights", "gradients", "optimizer", "activations", "inputs", "kv-cache", "temporaries",
         "unknown")
# Percent of the bytes that are right, at least: with stacks, without.
LEAST = {"first": (98, 94), "second": (96, 95)}


def run(tool, name, folder, torch):
    """Run the programs of a file. Returns the stems of their snapshots."""
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1")
    done = subprocess.run([tool, "dry-run", "--output", folder / "all", "--", sys.executable,
                           HERE / f"categories/{name}.py", folder],
                          env=env, capture_output=True, text=True, check=False)
    found = sorted(path.stem for path in folder.glob("*.json"))
    started = (HERE / f"categories/{name}.py").read_text().count("\n@program(")
    if len(found) != started:
        sys.exit(f"{len(found)} of {started} programs ran to their end\n{done.stdout}{done.stderr}")
    return found


def strip(path):
    """Write a snapshot without stacks beside it."""
    snapshot = pickle.loads(path.read_bytes())
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for one in [*blocks, *snapshot["segments"], *(e for t in snapshot["device_traces"] for e in t)]:
        one.pop("frames", None)
        one.pop("forward_frames", None)
    bare = path.with_suffix(".bare")
    bare.write_bytes(pickle.dumps(snapshot))
    return bare


def compare(helper, path, moments):
    """Yield (label, answer, bytes, row) of each block that is alive at a mark."""
    done = subprocess.run([helper, path], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    marks = {int(row[4]) - MARK_BYTES: int(row[0]) - 1 for row in rows
             if MARK_BYTES <= int(row[4]) < MARK_BYTES + len(moments)}
    saves = any(label == "activations" for labels in moments for label in labels.values())
    for mark, labels in enumerate(moments):
        alive = {row[2]: row for row in rows if int(row[0]) <= marks[mark] < int(row[1])}
        if labels.keys() - alive.keys():
            sys.exit(f"{path}: a labelled storage is not alive at mark {mark}")
        for address, row in alive.items():
            label = labels.get(address, OTHER)
            if label == OTHER and row[5] == "activations" and not saves:
                row[5] = "temporaries"
            yield label, row[5], int(row[3]), row


def is_right(label, answer):
    return label == answer or label == OTHER and answer in ("temporaries", "unknown")


def share(table):
    right = sum(size for (label, answer), size in table.items() if is_right(label, answer))
    return 100 * right / sum(table.values())


def print_table(title, table, unit, form):
    print(f"{title:14}" + "".join(f"{kind:>12}" for kind in KINDS))
    for label in [*KINDS[:-2], OTHER]:
        cells = [format(table[label, kind] / unit, form) if table[label, kind] else "-"
                 for kind in KINDS]
        print(f"{label:14}" + "".join(f"{cell:>12}" for cell in cells))


def judge(given, name, folder, torch):
    """Compare a file's programs. Returns the percents of bytes that are right."""
    found = run(given.tool, name, folder, torch)
    percents = []
    for title, prepare in (("with stacks", lambda path: path), ("without", strip)):
        blocks, sizes = collections.Counter(), collections.Counter()
        for stem in found:
            path = prepare(folder / f"{stem}.pickle")
            mine, wrong = collections.Counter(), collections.Counter()
            for label, answer, size, row in compare(
                    given.helper, path, json.loads((folder / f"{stem}.json").read_text())):
                mine[label, answer] += size
                blocks[label, answer] += 1
                if not is_right(label, answer):
                    wrong[(label, answer, *row[6:])] += size
            print(f"{stem:18} {title:12} {share(mine):6.1f} % of {sum(mine.values()) >> 10:7} KiB")
            for kind, size in wrong.most_common() if given.wrong else ():
                print(f"    {size >> 10:8} KiB", *kind)
            sizes.update(mine)
        percents.append(share(sizes))
        print(f"{name}, {title}: {share(sizes):.1f} % of bytes, {share(blocks):.1f} % of blocks")
        if given.table:
            print_table("MiB", sizes, 1 << 20, ".1f")
            print_table("blocks", blocks, 1, ".0f")
    return percents


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("helper")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    given = parser.parse_args()
    torch = find_torch()
    failed = False
    for name, least in LEAST.items():
        with tempfile.TemporaryDirectory() as folder:
            percents = judge(given, name, pathlib.Path(folder), torch)
        failed |= any(percent < wanted for percent, wanted in zip(percents, least))
    sys.exit(failed)


main()
