#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the page of a job against the truth: fleet_page.py TOOL MAKE_FLEET

The answers in it are unpacked as the page unpacks them, and held against what --json prints and
against medians and steps made anew in Python.
"""
import base64
import json
import pathlib
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import zlib

AN_ANSWER = 64


def read_page(text):
    """Read the answers of a page by their keys."""
    assert "connect-src 'none'" in text and "connect-src 'self'" not in text
    found = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', text, re.S)
    assert len(found) == 1
    return {key: json.loads(zlib.decompress(base64.b64decode(answer, validate=True)))
            for key, answer in json.loads(found[0]).items()}


class Fleet:
    def __init__(self, tool, work):
        self.tool, self.work = tool, work

    def run(self, *words, status):
        done = subprocess.run([self.tool, "fleet", *map(str, words)], cwd=self.work, check=False,
                              capture_output=True, text=True, errors="surrogateescape")
        assert done.returncode == status, (words, done.returncode, done.stderr)
        return done

    def page(self, *words, status):
        self.run(*words, "-o", "page.html", status=status)
        return read_page((self.work / "page.html").read_text(encoding="utf-8"))


def of_ranks(answers, name):
    """Gather what the answers of that name say of files."""
    told = {}
    for i, file in enumerate(answers["about"]["order"]):
        answer = answers.get(f"{name}/{i // AN_ANSWER}")
        if answer is not None:
            told[file] = answer[i % AN_ANSWER]
    return told


def check_order(answers):
    fleet, order = answers["fleet"], answers["about"]["order"]
    used = [i for i, file in enumerate(fleet["files"]) if file["use"] == "used"]
    assert sorted(order) == used
    sick = {f["file"] for f in fleet["findings"] if f["file"] is not None}
    assert set(order[:len(sick)]) == sick
    if fleet["first_failure"]:
        assert order[0] == fleet["first_failure"]["file"]


def check_lines(answers):
    """Groups hold the medians of what their ranks hold."""
    lines = of_ranks(answers, "lines")
    for group, told in zip(answers["fleet"]["groups"], answers["groups"]):
        held = {}
        for file in group["files"]:
            for place, size, _ in lines[file]["lines"]:
                held.setdefault(place, []).append(size)
        count = len(group["files"])
        wanted = {}
        for place, sizes in held.items():
            median = statistics.median_low(sizes + [0] * (count - len(sizes)))
            if count - len(sizes) <= (count - 1) // 2:
                wanted[place] = [median, len(sizes)]
            else:
                assert median == 0
        assert told is None and count == 1 or {p: rest for p, *rest in told} == wanted


def check_steps(answers):
    """The timeline is what the peaks of the ranks make."""
    steps = {}
    for first, *peaks in of_ranks(answers, "peaks").values():
        for i, peak in enumerate(peaks):
            steps.setdefault(first + i, []).append(peak)
    for step in answers["fleet"]["timeline"]["steps"]:
        peaks = steps.pop(step["step"])
        assert [len(peaks), min(peaks), statistics.median_low(peaks), max(peaks)] == [
            step[key] for key in ("ranks", "min", "median", "max")]
    assert all(len(peaks) == 1 for peaks in steps.values())


def check_job(fleet, name, *words, status):
    text = fleet.run(name, *words, status=status).stdout
    done = fleet.run(name, *words, "-o", "page.html", status=status)
    assert done.stdout == text and done.stderr.startswith("page.html: "), done.stderr
    answers = read_page((fleet.work / "page.html").read_text(encoding="utf-8"))
    assert answers["fleet"] == json.loads(fleet.run(name, *words, "--json", status=status).stdout)
    assert answers["about"]["left_out"] == []
    assert answers["about"]["compared"] == any(len(group["files"]) >= 5
                                               for group in answers["fleet"]["groups"])
    check_order(answers)
    check_lines(answers)
    check_steps(answers)
    flat = " ".join(text.split())
    sentences = [s for s in answers["about"]["sentences"].values() if s]
    for sentence in sentences + answers["about"]["findings"]:
        assert " ".join(sentence.split()) in flat, sentence
    assert fleet.page(name, *words, "--json", status=status) == answers
    assert read_page(fleet.run(name, *words, "-o", "-", status=status).stdout) == answers


def make_sick(fleet, maker):
    subprocess.run([maker, fleet.work / "sick", "7", "64", "4", "leak=13", "extra=50", "oom=21",
                    "stage=2"], check=True)
    job, evil = fleet.work / "sick", "</script><script>alert(1)<"
    (job / "rank30_memory_snapshot.pickle").write_bytes(b"\x80\x04](")
    shutil.copy(job / "rank4_memory_snapshot.pickle", job / "rank5_memory_snapshot.pickle")
    (job / evil).mkdir(parents=True)
    shutil.move(job / "rank9_memory_snapshot.pickle", job / evil / "rank9.pickle")


def check_budget(fleet, name):
    """A large job's page is as small as asked, and says what it lacks."""
    job, rows = fleet.work / "large", fleet.work / "large.sqlite"
    job.mkdir()
    for rank in range(600):
        (job / f"rank{rank}.pickle").touch()
    fleet.run("large", "--store", rows, status=3)
    fleet.run(name, "--store", rows, "--no-settings", status=1)
    random.seed(3)
    with sqlite3.connect(rows) as store:
        row = json.loads(store.execute(
            "select text from result where key like 'row sick/rank0%'").fetchone()[0])
        for rank in range(600):
            for line in row["lines"]:
                line["bytes"] = random.randrange(1 << 28, (1 << 28) + (1 << 16))
            row["hash"], row["file_bytes"] = f"{rank:x}", 1000 + rank
            row["peaks"] = [random.randrange(1 << 30, 1 << 31) for _ in range(200)]
            row["steps"] = 200
            store.execute("update result set text = ? where key = ?",
                          (json.dumps(row), f"row large/rank{rank}.pickle"))
    rows_used = ("large", "--store", rows, "--no-settings")
    small = fleet.page(*rows_used, "--max-size", "256KiB", status=0)
    assert (fleet.work / "page.html").stat().st_size <= 256 << 10
    assert small["fleet"]["used"] == 600
    kept = len(of_ranks(small, "lines")), len(of_ranks(small, "peaks"))
    assert small["about"]["left_out"] == [
        f"the {what} of {600 - count} of 600 ranks"
        for what, count in zip(("lines", "steps"), kept) if count < 600], small["about"]["left_out"]
    assert kept[1] < 600
    whole = fleet.page(*rows_used, status=0)
    assert whole["about"]["left_out"] == []
    check_lines(whole)
    check_steps(whole)


def check_hostile(fleet):
    fleet.run("sick", "--no-settings", "-o", "page.html", status=1)
    text = (fleet.work / "page.html").read_text(encoding="utf-8")
    assert "alert(1)" not in text
    assert any("alert(1)" in f["path"] for f in read_page(text)["fleet"]["files"])


def check_refusals(fleet):
    first = sorted((fleet.work / "sick").glob("*.pickle"))[0]
    kept = first.read_bytes()
    for words, status in ((["sick", "-o", first], 2), (["sick", "--max-size", "1MiB"], 2),
                          (["sick", "-o", "p.html", "--max-size", "1KiB"], 2),
                          (["sick", "-o", "-", "--json"], 2),
                          (["sick", "-o", "x.sqlite", "--store", "x.sqlite"], 2),
                          (["sick", "-o", "p.html", "--store", "x.sqlite", "--part", "0/2"], 2),
                          (["sick", "--no-settings", "-o", "no/where.html"], 4)):
        fleet.run(*words, status=status)
        assert not list(fleet.work.glob("*.part-*")) and not list(fleet.work.glob("p.html"))
    assert first.read_bytes() == kept
    (fleet.work / "broken").mkdir()
    (fleet.work / "broken/rank0.pickle").write_bytes(b"\x80\x04](")
    broken = fleet.page("broken", status=3)
    assert broken["fleet"]["used"] == 0 and not broken["about"]["compared"]


def main():
    tool, maker = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        fleet = Fleet(tool, pathlib.Path(name))
        make_sick(fleet, maker)
        check_job(fleet, "sick", status=1)
        check_job(fleet, "sick", "--no-settings", "--threads", "1", status=1)
        check_hostile(fleet)
        check_budget(fleet, "sick")
        check_refusals(fleet)


main()
