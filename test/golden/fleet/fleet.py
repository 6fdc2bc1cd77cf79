#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose sick ranks are known: all are found, none is invented.

fleet.py [--update] MAKE_FLEET TOOL
"""
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

arguments = sys.argv[1:]
update = "--update" in arguments
if update:
    arguments.remove("--update")
maker, tool = (pathlib.Path(word).resolve() for word in arguments)
here = pathlib.Path(__file__).resolve().parent
work = pathlib.Path(tempfile.mkdtemp())
failures = []


def expect(what, is_so):
    if not is_so:
        failures.append(what)
        print(f"not so: {what}", file=sys.stderr)


def make(name, *words):
    subprocess.run([maker, work / name, *map(str, words)], check=True)


def fleet(*words, code=None):
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run([tool, "fleet", *map(str, words)], cwd=work, capture_output=True,
                          text=True, errors="surrogateescape", env=environment)
    if code is not None:
        expect(f"{words} ends with {code}, not {done.returncode}: {done.stderr}",
               done.returncode == code)
    return done.stdout, done.stderr


def findings(report):
    """The kinds of findings with the ranks, or with the ranks of the group."""
    files = report["files"]
    return sorted({(f["kind"], files[f["file"]]["rank"] if f["file"] is not None
                    else files[report["groups"][f["group"]]["files"][0]]["rank"])
                   for f in report["findings"]})


def check_sick():
    make("sick", 7, 64, 4, "leak=13", "extra=50", "oom=21", "device=60", "stage=2")
    job = work / "sick"
    name = "rank{}_memory_snapshot.pickle"
    whole = (job / name.format(30)).read_bytes()
    (job / name.format(30)).write_bytes(whole[:30000])
    (job / name.format(31)).write_bytes(b"")
    shutil.copy(job / name.format(4), job / name.format(5))
    (job / name.format(9)).unlink()
    shutil.copy(job / name.format(2), job / "oom-2.pickle")
    (job / "notes.json").write_text("{}")  # no snapshot by its name
    text, _ = fleet("sick", code=1)
    report = json.loads(fleet("sick", "--json", code=1)[0])
    expect("all sick ranks are found, and no other",
           findings(report) == sorted([("leak", 13), ("more", 13), ("more", 50), ("oom", 21),
                                       ("device", 60), ("group", 32)]))
    expect("the extra line is named",
           any(f["line"] == "metrics.py:88 gather_logits" for f in report["findings"]))
    expect("the leak is named", any(f["kind"] == "leak" and f["line"] == "train.py:74 append"
                                    and f["bytes"] == 9 << 20 for f in report["findings"]))
    uses = {pathlib.Path(f["path"]).name: f["use"] for f in report["files"]
            if f["use"] != "used"}
    expect(f"files that do not count: {uses}",
           uses == {name.format(30): "broken", name.format(31): "broken",
                    name.format(5): "same-content", name.format(2): "same-content"})
    expect("the missing rank is named", report["missing"] == [[9, 9]])
    expect("the first failure", report["files"][report["first_failure"]["file"]]["rank"] == 21)
    tried = [{c["conf"]: c for c in f["candidates"]} for f in report["settings"]["files"]]
    expect("the setting stands with those replayed on the rank that it helps",
           any(report["settings"]["conf"] in confs and
               confs[report["settings"]["conf"]]["gain_bytes"] == report["settings"]["gain_max"]
               for confs in tried))
    expect("the text is short and narrow", len(text.splitlines()) < 80 and
           max(map(len, text.splitlines())) <= 80)
    return text


def check_healthy():
    for seed in range(10):
        ranks, stages = (32, 4) if seed % 2 else (24, 1)
        make(f"well{seed}", seed, ranks, stages)
        report = json.loads(fleet(f"well{seed}", "--json", "--no-settings", code=0)[0])
        expect(f"seed {seed} is well: {report['findings']}", report["findings"] == [])
        expect(f"groups of seed {seed}", len(report["groups"]) == (2 if stages > 1 else 1))
        expect("nothing to change", report["advice"]["kind"] == "nothing")


def check_threads_and_store(text):
    for threads in 1, 2, 5:
        expect(f"{threads} threads", fleet("sick", "-t", threads)[0] == text)
    store = work / "rows.sqlite"
    for _ in range(2):
        expect("with a store", fleet("sick", "--store", store)[0] == text)
    rows = sqlite3.connect(store)
    kept = rows.execute("select * from result order by key").fetchall()
    broken = ["'{\"schema\": 1}'", "substr(text, 1, length(text) / 2)", "''", "null", "x'00ff'", "7",
              "replace(text, '/1\"', '/9\"')", "replace(text, 'hash', 'hush')"]
    for place in "row", "settings", "try":
        for key, text_of in zip([key for key, *_ in kept if key.startswith(place)], broken):
            rows.execute(f"update result set text = {text_of} where key = ?", (key,))
    rows.commit()
    expect("a broken row is read anew from its file", fleet("sick", "--store", store)[0] == text)
    expect("and is replaced", rows.execute("select * from result order by key").fetchall() == kept)
    rows.close()


def check_many_at_once():
    """Commands that make one store together all end well, and it has every row once."""
    store = work / "together.sqlite"
    words = [tool, "fleet", "well0", "--no-settings", "--store", store]
    jobs = [subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for _ in range(12)]
    told = [job.communicate() for job in jobs]
    expect(f"all end well: {told}", [job.returncode for job in jobs] == [0] * len(jobs) and
           len(set(told)) == 1)
    rows = sqlite3.connect(store)
    expect("every row is there once", [key for key, in rows.execute(
        "select key from result order by key")] == sorted(f"row {path.relative_to(work)}"
                                                          for path in (work / "well0").iterdir()))
    rows.close()


def check_parts(text):
    store = work / "parts.sqlite"
    for part in 0, 2:
        said, _ = fleet("sick", "--store", store, "--part", f"{part}/3", code=0)
        expect("a part prints nothing", said == "")
    said, told = fleet("sick", "--store", store, "--merge")
    expect("the missing part is named", "part 1 of 3 is missing" in told)
    expect("parts give the same", said == text)


def check_none_is_fine():
    (work / "broken").mkdir()
    (work / "broken/rank0.pickle").write_bytes(b"\x80\x04](")
    said, told = fleet("broken", code=3)
    expect("nothing is said of no rank", "What to change" not in said and "byte 4" in said)
    expect("none can be used", "none of the files can be used" in told)


def check_names():
    job = work / "well0"
    for rank, file in enumerate(sorted(job.iterdir(), key=lambda f: int(
            re.search(r"\d+", f.name).group()))):
        folder = work / "named" / f"host{rank // 8}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / f"w{rank}x\n\x1b[31m\udcff.pickle")
    report = json.loads(fleet("named", "--json", "--no-settings")[0])
    expect("no rank is guessed", all(f["rank"] is None for f in report["files"]))
    text, _ = fleet("named", "--no-settings", "--all")
    expect("a hostile name moves no cursor", "\x1b" not in text and "\udcff" not in text)
    report = json.loads(fleet("named", "--rank-from", "/w([0-9]+)x", "--json",
                              "--no-settings", code=0)[0])
    expect("ranks by a pattern", [f["rank"] for f in report["files"]] == list(range(24)))
    report = json.loads(fleet("named/host*/*", "--rank-from", "/w([0-9]+)x", "--json",
                              "--no-settings", code=0)[0])
    expect("files by a pattern", len(report["files"]) == 24)
    for job, least in ("well0", 30), ("sick", 80), ("named", 40):
        lines = fleet(job, "--all", "--no-settings")[0].splitlines()
        expect(f"all of {job} is shown", len(lines) > least)
        expect(f"all of {job} is narrow", max(map(len, lines)) <= 80)


def check_few():
    make("few", 1, 4, 1)
    text, _ = fleet("few", "--no-settings", code=0)
    expect("few ranks are not compared", "a comparison needs five similar ranks" in text)


def check_refusals():
    (work / "none").mkdir()
    (work / "none" / "rank0.pickle").write_bytes(b"")
    for words, code, said in (
            (["nowhere"], 3, "No such file"), (["none/*.gz"], 3, "no file has such a name"),
            ([], 2, "no files"), (["sick", "--rank-from", "("], 2, "--rank-from ("),
            (["sick", "--rank-from", "x"], 2, "it has no group"),
            (["none"], 3, "none of the files can be used"), (["/dev/null"], 3, "plain file"),
            (["sick", "--store", "sick/notes.json"], None, "")):
        _, error = fleet(*words, code=code)
        expect(f"{words}: {error}", said in error)
    (work / "bare").mkdir()
    expect("an empty folder", "no snapshots" in fleet("bare", code=3)[1])


check_healthy()
told = check_sick()
check_threads_and_store(told)
check_many_at_once()
check_parts(told)
check_none_is_fine()
check_names()
check_few()
check_refusals()
kept = here / "fleet.expected"
if update:
    kept.write_text(told)
expect("the report is the kept one", kept.exists() and kept.read_text() == told)
shutil.rmtree(work)
sys.exit(1 if failures else 0)
