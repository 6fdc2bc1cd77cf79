#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a change costs in GPU memory, as a comment in Markdown, by two dry runs.

    memory_check.py --base FOLDER --head FOLDER [options] -- COMMAND

COMMAND, a PyTorch program, runs dry in each folder: no GPU is needed. The comment has both
peaks, and what each line holds more. Exit status 1: the head fails a condition, or does not fit
where the base does; 3: a run told nothing.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

MARK = "<!-- drystone memory-check -->"
TOOL = os.environ.get("DRYSTONE", "drystone")
FOUND, NOT_KNOWN = 1, 3


def dry_run(folder, snapshot, options):
    """What the dry run in a folder says, as an object; None if it said nothing."""
    words = [TOOL, "dry-run", "--quiet", "--json", "--output", snapshot]
    words += ["--card", options.card] if options.card else []
    done = subprocess.run([*words, "--", *options.command], cwd=folder, check=False,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.returncode in (0, 1) else None


def show(size):
    return f"{size / 2**30:,.2f} GiB" if size >= 2**30 else f"{size / 2**20:,.2f} MiB"


def make_table(base, head):
    lines = ["| at the peak | base | head | difference |", "|---|---:|---:|---:|"]
    for name in ("allocated", "reserved"):
        before, now = (run[f"{name}_peak_bytes"] for run in (base, head))
        sign = "+" if now >= before else "-"
        lines.append(f"| {name} | {show(before)} | {show(now)} | {sign}{show(abs(now - before))} |")
    fits = ["fits" if run["fits"] else "does not fit" for run in (base, head)]
    return [*lines, f"| on {head['card']} | {fits[0]} | {fits[1]} | |"]


def judge(snapshot, options):
    """Hold the head against the baseline and conditions. Returns the status and what holds."""
    if not options.baseline and not options.fail_if:
        return 0, ""
    words = [TOOL, "explain", snapshot, "--annotate", "github"]
    words += ["--baseline", options.baseline] if options.baseline else []
    for condition in options.fail_if:
        words += ["--fail-if", condition]
    done = subprocess.run(words, cwd=options.head, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return done.returncode, done.stderr.strip()


def compare(base, head, snapshots, options):
    """Return the comment's lines and the exit status."""
    lines = [MARK, "### GPU memory, by a dry run", ""]
    if base is None or head is None:
        which = "base" if base is None else "head"
        return [*lines, f"The dry run of the {which} told nothing; see the job's log."], NOT_KNOWN
    status, held = judge(snapshots[1], options)
    if base["fits"] and not head["fits"]:
        status = status or FOUND
    diff = subprocess.run([TOOL, "diff", *snapshots, "--rows", "10"], capture_output=True,
                          text=True, check=False).stdout
    lines += [*make_table(base, head), ""]
    lines += ["```", held, "```"] if status and held else []
    return [*lines, "<details><summary>by line</summary>", "", "```", diff.rstrip(), "```",
            "</details>"], status


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name, text in (("base", "a checkout of what the change is made to"),
                       ("head", "a checkout with the change")):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True, help=text)
    parser.add_argument("--card", help="the card, see drystone-dry-run(1)")
    parser.add_argument("--baseline", help="figures to compare with, a file in the head; written "
                                           "if it is not there")
    parser.add_argument("--fail-if", action="append", default=[], metavar="CONDITION",
                        help="such as 'reserved_peak > baseline + 2%%'")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("."),
                        help="a folder for the snapshots and the comment")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    snapshots = [(options.work / f"{name}.pickle").resolve() for name in ("base", "head")]
    runs = [dry_run(folder, snapshot, options)
            for folder, snapshot in zip((options.base, options.head), snapshots)]
    lines, status = compare(*runs, snapshots, options)
    (options.work / "comment.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
