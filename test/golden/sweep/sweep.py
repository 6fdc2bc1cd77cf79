#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `drystone sweep` promises, held against other runs: sweep.py TOOL MAKE_CASES

The output is the same for any number of threads and from a store that is empty, half full or
full; every row has the figures of `drystone replay --conf`; a budget prunes, but never the
recorded settings; the store's tables have what the report has. On labelled programs, and on
recordings under $DRY_TEST_TRACES.
"""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

tool, make_cases = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
work = pathlib.Path(tempfile.mkdtemp())
GRID = ("max_split_size_mb=default,20:80:x2;expandable_segments=False,True;"
        "roundup_power2_divisions=default,[256:1,512:4,>:8]")
FIGURES = ("fits", "runs_on_bytes", "reserved_peak_bytes", "driver_time_us", "driver_calls",
           "num_alloc_retries")


def run(*words, code=(0, 1), env=None):
    done = subprocess.run([tool, *words], capture_output=True, text=True, cwd=work, env=env)
    assert done.returncode in code, (words, done.returncode, done.stderr)
    return done.stdout


def sweep(*words):
    return json.loads(run("sweep", *words, "--json"))


def check_threads(files):
    for form in ([], ["--json"], ["--runs", "3"], ["--capacity", "700MiB", "--rows", "2"]):
        outputs = {run("sweep", *files, "-g", GRID, *form, "--threads", str(threads))
                   for threads in (1, 2, 5)}
        assert len(outputs) == 1, (files, form)


def check_store(files):
    """A store that lost or broke results, and one that is whole, give the same."""
    store = work / "sweep.sqlite"
    for form in ([], ["--runs", "2"]):
        store.unlink(missing_ok=True)
        words = ["sweep", *files, "-g", GRID, *form]
        plain = run(*words)
        for is_ruined in (False, True, False):
            if is_ruined:
                with sqlite3.connect(store) as db:
                    keys = [key for key, in db.execute("SELECT key FROM result ORDER BY key")]
                    db.executemany("DELETE FROM result WHERE key = ?",
                                   [(key,) for key in keys[::2]])
                    db.execute("UPDATE result SET text = replace(text, '\"oom\"', ' \"oom\"')")
                    for key, broken in zip(keys[1::2], ("'{}'", "substr(text, 2)", "null")):
                        db.execute(f"UPDATE result SET text = {broken} WHERE key = ?", (key,))
                db.close()
            assert run(*words, "--store", store) == plain, (files, form, is_ruined)
        db = sqlite3.connect(store)
        kept = db.execute("SELECT count(*) FROM result WHERE text LIKE '% \"oom\"%'").fetchone()[0]
        assert kept > 0, "results of the store were not used"
        db.close()
        check_tables(store, sweep(*files, "-g", GRID, *form))


def check_many_at_once(files):
    """Sweeps that make one store together all end well, and it has what one makes."""
    store = work / "together.sqlite"
    words = [tool, "sweep", *files, "-g", GRID, "--store", store]
    jobs = [subprocess.Popen(words, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True) for _ in range(8)]
    told = [job.communicate()[1] for job in jobs]
    assert all(job.returncode in (0, 1) for job in jobs), told
    check_tables(store, sweep(*files, "-g", GRID))


def check_parts(files):
    """Three parts, by number and by a job array's variables, make one store."""
    store = work / "parts.sqlite"
    words = ["sweep", *files, "-g", GRID, "--store", store]
    array = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    for part, more in (("0/3", {}), ("1/3", {}), ("auto", array)):
        assert run(*words, "--part", part, env={**os.environ, **more}) == ""
    assert run(*words, "--merge") == run("sweep", *files, "-g", GRID)
    check_tables(store, sweep(*files, "-g", GRID))


def check_tables(store, report):
    db = sqlite3.connect(store)
    db.row_factory = sqlite3.Row
    table = db.execute("SELECT * FROM sweep ORDER BY rank").fetchall()
    assert len(table) == len(report["rows"]) + len(report["refused"])
    for row, kept in zip(report["rows"], table):
        state = ("recorded" if row["recorded"] else
                 "pruned" if row["pruned_in_round"] else "whole")
        assert (kept["conf"], kept["state"]) == (row["conf"], state)
        assert all(kept[key] == value for key, value in (row["settings"] or {}).items())
        assert kept["is_front"] == row["front"] and kept["worst_file"] == row["worst_file"]
        files = db.execute("SELECT * FROM sweep_file WHERE rank = ?", (kept["rank"],)).fetchall()
        order = [file["file"] for file in report["files"]]
        files.sort(key=lambda file: order.index(file["file"]))
        for figures, stored in [(row["figures"], kept), *zip(row["files"], files)]:
            for key in FIGURES:
                assert stored[key] == figures[key], (key, stored[key], figures[key])
    for row, kept in zip(report["refused"], table[len(report["rows"]):]):
        assert (kept["conf"], kept["state"]) == (row["conf"], "refused")
    db.close()


def check_replay(files, *words):
    """Each row's figures for a file are those of a replay; the row has the largest."""
    report = sweep(*files, "-g", GRID, *words)
    confs = [row["conf"] for row in report["rows"] if not row["recorded"]]
    for i, file in enumerate(files):
        flags = [word for conf in confs for word in ("--conf", conf)]
        runs = json.loads(run("replay", file, *flags, *words, "--find-capacity", "--json"))["runs"]
        for row, one in zip([row for row in report["rows"] if not row["recorded"]], runs):
            figures = row["files"][i]
            assert figures["fits"] != one["oom"], row
            assert figures["runs_on_bytes"] == one["capacity_bytes"], row
            for key in FIGURES[2:]:
                assert figures[key] == one[key], (row, key)
    check_rows(report)


def check_rows(report):
    recorded = next(row for row in report["rows"] if row["recorded"])
    assert recorded["pruned_in_round"] is None
    whole = [row for row in report["rows"] if row["pruned_in_round"] is None]
    assert whole == report["rows"][:len(whole)]
    for row in report["rows"]:
        for key in FIGURES[1:]:
            values = [figures[key] for figures in row["files"]]
            assert row["figures"][key] == (None if None in values else max(values))
            if row["difference"] and None not in (row["figures"][key], recorded["figures"][key]):
                less = row["figures"][key] - recorded["figures"][key]
                assert abs(row["difference"][key] - less) < 0.01
    ranked = [(not f["fits"], f["runs_on_bytes"], f["reserved_peak_bytes"], f["driver_time_us"])
              for f in (row["figures"] for row in whole)]
    assert ranked == sorted(ranked)
    for row, mine in zip(whole, ranked):
        beaten = any(other != mine and not other[0] and all(a <= b for a, b in zip(other, mine))
                     for other in ranked)
        assert row["front"] == (not mine[0] and not beaten), row


def check_budget(files):
    for budget in (1, 3, 8, 16):
        report = sweep(*files, "-g", GRID, "--runs", str(budget))
        check_rows(report)
        whole = [row for row in report["rows"] if row["pruned_in_round"] is None]
        assert len(whole) == min(budget, 16) + 1
        tried = [stage["tried"] for stage in report["budget"]["rounds"]]
        kept = [stage["kept"] for stage in report["budget"]["rounds"]]
        assert tried[1:] == kept[:-1] and (not kept or kept[-1] == budget)
        for i in range(len(tried)):
            pruned = [row for row in report["rows"] if row["pruned_in_round"] == i + 1]
            assert len(pruned) == tried[i] - kept[i]


def main():
    subprocess.run([make_cases, work], check=True, stdout=subprocess.DEVNULL)
    cases = ["fragmentation-varlen.pickle", "healthy-streams.pickle"]
    check_threads(cases)
    check_store(cases)
    check_many_at_once(cases)
    check_parts(cases)
    check_replay(cases)
    check_replay(cases[:1], "--capacity", "18GiB")
    check_budget(cases[1:])
    traces = pathlib.Path(os.environ.get("DRY_TEST_TRACES", "")) / "pytorch"
    recordings = [str(traces / name) for name in ("tiny-cs336.pickle", "compile-context.pickle",
                                                  "late-start.pickle", "python-stacks-only.pickle")]
    if all(os.path.exists(path) for path in recordings):
        check_replay(recordings)
        check_threads(recordings[:2])
    else:
        print(f"SKIPPED: recordings in {traces}; set DRY_TEST_TRACES")


main()
