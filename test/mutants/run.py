#!/usr/bin/env python3
"""The tests of place/paged can fail: each mutant of it is caught by a named test.

A mutant is a copy of src/place/paged* with one piece of text replaced, compiled into the
named test without assertions, so that what catches it is what the test knows from outside
or the place's own check. Each piece must be there exactly once: a mutant that no longer
applies is a failure too. The tests pass on an unchanged copy first.

    run.py --root SOURCES --build FOLDER --libraries SUPPORT.a DRYSTONE.a -- cc [ARGUMENTS]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

# name: file, what is there, what is put there, program, test
MUTANTS = {
    "early_reuse": (
        "paged_shelf.c",
        "b->size >= size && b->epoch <= epoch",
        "b->size >= size && b->epoch >= epoch",
        "prop_paged", "paged_keeps_the_contract"),
    "early_unmap": (
        "paged_release.c",
        "    if (dryi_paged_is_over(p, b))\n        return true;\n",
        "    if (b->size > 0)\n        return true;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_coalesce": (
        "paged_block.c",
        "while (may_merge(p, b, b->next))",
        "while (false && may_merge(p, b, b->next))",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_page_count": (
        "paged_page.c",
        "tally_sub(p, TALLY_RESERVED_BYTES, false, p->page_bytes);",
        "",
        "prop_paged", "paged_keeps_the_contract"),
    "wrong_bin_bit": (
        "paged_shelf.c",
        "(uint32_t)(head == NIL) << (bin % 32)",
        "(uint32_t)(head == NIL) << ((bin + 1) % 32)",
        "prop_paged", "paged_keeps_the_contract"),
    "forgotten_use": (
        "paged_stream.c",
        "    if (b->uses == NONE) {\n        make_free(",
        "    if (b->size > 0) {\n        make_free(",
        "prop_paged", "paged_keeps_the_contract"),
    "unasked_event": (
        "paged_stream.c",
        "while (s->first_use != NONE &&\n",
        "while (s->first_use != NONE || s->first_use != NONE &&\n",
        "prop_paged", "paged_keeps_the_contract"),
    "order_overrated": (
        "paged_stream.c",
        "dryi_paged_learn(p, to, from, p->streams[from].epoch)",
        "dryi_paged_learn(p, to, from, p->streams[from].epoch + 1)",
        "prop_paged", "paged_keeps_the_contract"),
    "limit_ignored": (
        "paged_page.c",
        "return reserved <= p->limit_bytes && bytes <= p->limit_bytes - reserved;",
        "return reserved < UINT64_MAX - bytes;",
        "prop_paged", "paged_keeps_the_contract"),
    "lost_page": (
        "paged_page.c",
        "p->stock[p->stock_count++] = span->pages[i] - 1;",
        "if (i > first) p->stock[p->stock_count++] = span->pages[i] - 1;",
        "prop_paged", "paged_keeps_the_contract"),
    "front_without_flush": (
        "paged_front.c",
        "any |= s->front_blocks > 0;\n        flush_shelf(p, s);\n",
        "any |= s->front_blocks > 0;\n",
        "prop_paged", "paged_keeps_the_contract"),
    "too_small_block": (
        "paged_shelf.c",
        "(b->size >= size) & (is_smaller",
        "(b->size + GRAIN >= size) & (is_smaller",
        "prop_paged", "paged_keeps_the_contract"),
    "unchecked_hint": (
        "paged_plan.c",
        "(!is_hole && b->state != BLOCK_FREE)",
        "(!is_hole && b->state == BLOCK_PENDING)",
        "test_paged_plan", "a_request_more_is_planned_around"),
    "follow_overrated": (
        "paged_ladder.c",
        "dryi_paged_learn(p, stream, on, p->uses[use].epoch)",
        "dryi_paged_learn(p, stream, on, p->uses[use].epoch + 1)",
        "test_paged_plan", "streams_of_a_loop_share_a_plan"),
    "unordered_hint": (
        "paged_plan.c",
        "!dryi_paged_is_usable(p, r->shelf, b) && !note_wait(p, b, range)",
        "false && !note_wait(p, b, range)",
        "test_paged_plan", "streams_of_a_loop_share_a_plan"),
}

SOURCES = {"prop_paged": "test/prop/prop_paged.c",
           "test_paged_plan": "test/unit/test_paged_plan.c"}
SECONDS = 120
RUN = re.compile(r"\[ RUN +\] (\w+)")
FAILED = re.compile(r"\[ +FAILED +\] (\w+)")


def compile_all(setup, folder, mutant):
    """The programs of one copy of the sources; the copy is in folder/src/place."""
    flags = ["-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-DDRYI_ASSERT_LEVEL=0",
             f"-I{folder}/src", f"-I{setup.root}/src", f"-I{setup.root}/include",
             f"-I{setup.root}/test"]
    places = sorted(str(path) for path in (folder / "src/place").glob("*.c"))
    program = folder / mutant
    subprocess.run(setup.cc + flags + places + [str(setup.root / SOURCES[mutant])]
                   + ["-o", str(program)] + setup.libraries + ["-lcmocka", "-lm"],
                   check=True)
    return program


def run(program, rounds):
    """(passed, the test that failed first or ran last, the last line that says why)."""
    env = dict(os.environ, DRY_TEST_ROUNDS=str(rounds), CMOCKA_MESSAGE_OUTPUT="stdout")
    try:
        done = subprocess.run([str(program)], env=env, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text, passed = done.stdout.decode(errors="replace"), done.returncode == 0
    except subprocess.TimeoutExpired as stopped:
        text, passed = (stopped.stdout or b"").decode(errors="replace") + "\nno end", False
    ran = FAILED.findall(text)[:1] or RUN.findall(text)
    why = [line for line in text.splitlines() if line.startswith("place_ops:")]
    return passed, ran[-1] if ran else "", (why or text.splitlines() or [""])[-1]


def copy_sources(setup, folder, change=None):
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "src/place"
    place.mkdir(parents=True)
    for path in sorted((setup.root / "src/place").glob("paged*")):
        text = path.read_text()
        if change and path.name == change[0]:
            if text.count(change[1]) != 1:
                return f"what is replaced is in {path.name} {text.count(change[1])} times"
            text = text.replace(change[1], change[2])
        (place / path.name).write_text(text)
    if change and not (place / change[0]).exists():
        return f"{change[0]} is not there"
    return None


def check_mutant(setup, name):
    """None, or what is wrong with it."""
    change = MUTANTS[name]
    folder = setup.build / name
    wrong = copy_sources(setup, folder, change)
    if wrong:
        return wrong
    passed, test, why = run(compile_all(setup, folder, change[3]), setup.rounds)
    if passed:
        return f"is not caught by {change[3]}"
    if test != change[4]:
        return f"is caught by {test}, not by {change[4]}"
    print(f"{name}: {test}: {why}", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--only")
    parser.add_argument("cc", nargs="+")
    setup = parser.parse_args()
    failed = 0
    folder = setup.build / "unchanged"
    copy_sources(setup, folder)
    for program in sorted({change[3] for change in MUTANTS.values()}):
        passed, test, why = run(compile_all(setup, folder, program), setup.rounds)
        if not passed:
            print(f"unchanged: {program} fails in {test}: {why}")
            return 1
    for name in MUTANTS:
        if setup.only in (None, name):
            wrong = check_mutant(setup, name)
            if wrong:
                print(f"{name}: {wrong}", flush=True)
                failed += 1
    print(f"{len(MUTANTS)} mutants, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
