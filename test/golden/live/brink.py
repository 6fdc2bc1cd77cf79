#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that cross a threshold are told, and asked for snapshots: brink.py TOOL SHOW_PAGE NVML"""
import json
import re
import subprocess
import sys

from program import GIB, Machine, growing, measure_in_peace


class Watcher:
    """A `drystone live` that prints a line an event."""

    def __init__(self, m, *words):
        self.process = subprocess.Popen(m.words("--every", "0.05", *words), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=m.environment(), text=True)

    def line(self):
        text = self.process.stdout.readline()
        assert text, self.process.stderr.read()
        return text

    def let_look(self, m):
        """Wait for a whole look: it tells of a program that began after another was told of."""
        for _ in range(2):
            witness = start(m, "witness")
            fill(witness, 1)
            line = self.line()
            assert "witness" in line, line
            witness.end("kill")
            if "; asked for" in line:
                assert "it ended before it answered" in self.line()

    def end(self, m):
        """The lines that were not read; the watcher is ended."""
        self.let_look(m)
        self.process.terminate()
        return self.process.communicate()[0].splitlines()


def fill(program, part, retries=0, source=0):
    program.tell("figures", source, int(part * GIB), GIB // 2, GIB, retries, 0)


def start(m, name="train", **more):
    program = m.start(name, **more)
    program.tell("source", "torch", 0, "-")
    fill(program, 0.5)
    return program


def check_share(m, folder):
    """Once, again after a fall, and at most so often."""
    program = start(m, "../my train\\x1b[2J", rank=3)
    name = f"{folder}/.._my_train__2J-rank3-{program.pid}"
    (folder / f".._my_train__2J-rank3-{program.pid}-1.pickle").write_text("there already")
    watcher = Watcher(m, "--at-used", "95%", "--snapshot", folder, "--at-most", "12")
    watcher.let_look(m)  # which asks for two: ten of twelve are the witnesses'
    fill(program, 0.96)
    line = watcher.line()
    assert f"96.0 % of the limit is taken; asked for {name}-2.pickle" in line, line
    assert program.tell("serve", 0, "42_MiB")[0].endswith("-2.pickle")
    line = watcher.line()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line), line
    assert f"snapshot written, 42 MiB: {name}-2.pickle" in line, line
    fill(program, 0.9)  # not far enough
    watcher.let_look(m)
    fill(program, 0.97)
    watcher.let_look(m)
    fill(program, 0.8)
    watcher.let_look(m)
    fill(program, 0.98)
    assert f"98.0 % of the limit is taken; asked for {name}-3.pickle" in watcher.line()
    program.tell("serve", 28, "no_space\\x1b[31m")
    assert f"no snapshot, no space?[31m: {name}-3.pickle" in watcher.line()
    fill(program, 0.1)
    watcher.let_look(m)
    fill(program, 1)
    assert "no snapshot, as many snapshots as --at-most allows were asked for" in watcher.line()
    assert watcher.end(m) == []
    program.end()
    assert sorted(p.name.split("-")[-1] for p in folder.glob("*.pickle")) == ["1.pickle",
                                                                              "2.pickle"]


def measure_rates(m, folder):
    program, other = start(m, rank=1), start(m, "other")
    watcher = Watcher(m, "--at-retries", "50", "--at-growth", "500MiB", "--json", "--snapshot",
                      folder, "train")

    def step(now):
        fill(program, 0.5 + now / 60, int(2 * now))
        fill(other, 0.5 + now / 60, int(2 * now))
    with growing(step) as pause:
        lines = [watcher.line(), watcher.line()]
    program.end("kill")
    lines += watcher.process.stdout
    assert watcher.process.wait() == 1
    other.end()
    return *pause, program, [json.loads(line) for line in lines]


def check_rates(m, folder):
    """Retries and growth a minute, as JSON; who is wanted ends the watch."""
    program, events = measure_in_peace(measure_rates, m, folder)
    assert [e["event"] for e in events] == ["crossed", "crossed", "answered"], events
    assert {e["rule"] for e in events[:2]} == {"retries", "growth"}
    for event in events:
        assert event["schema"] == "drystone.live-event/1" and event["pid"] == program.pid
        assert event["name"] == "train" and event["rank"] == 1
    for event in events[:2]:
        value = {"retries": 120, "growth": GIB}[event["rule"]]
        assert 0.7 < event["value"] / value < 1.3 and event["value"] >= event["threshold"], event
    assert events[1]["why"] == "a snapshot was asked for already" and events[1]["path"] is None
    assert events[0]["path"] == f"{folder}/train-rank1-{program.pid}-1.pickle"
    assert events[2]["text"] == "it ended before it answered" and events[2]["result"] == -1


def check_without_folder(m):
    program = start(m)
    watcher = Watcher(m, "--at-used", "50")
    line = watcher.line()
    assert "50.0 % of the limit is taken; no snapshot\n" in line, line
    program.end()
    assert watcher.end(m) == []


def check_refusals(m, folder):
    (folder / "file").write_text("")
    for words, code, said in (
            (("--at-used", "0%"), 2, "a share from 1% to 100%"), (("--at-used", "x"), 2, "a share"),
            (("--at-used", "5%%"), 2, "a share"), (("--at-used", "9", "--once"), 2, "--once or --for"),
            (("--at-growth", "1k", "--for", "5"), 2, "--once or --for"),
            (("--snapshot", folder), 2, "for --at-used, --at-retries, --at-growth and"),
            (("--at-used", "9", "--at-most", "2"), 2, "for --snapshot alone"),
            (("--at-used", "9", "--snapshot", folder / "absent"), 3, "No such file"),
            (("--at-used", "9", "--snapshot", folder / "file"), 3, "a folder is expected")):
        assert said in m.live(*words, code=code), words


def main():
    with Machine(*sys.argv[1:4]) as m:
        for check in (check_share, check_rates):
            folder = m.folder / check.__name__
            folder.mkdir()
            check(m, folder)
        check_without_folder(m)
        check_refusals(m, m.folder)


main()
