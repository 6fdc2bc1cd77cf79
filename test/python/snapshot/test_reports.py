#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports are the command's: the same JSON, the same text, the same refusals."""
import copy
import html.parser
import json
import os
import pickle
import subprocess
import tempfile
import unittest
import unittest.mock

import snapshot_here as here
import drystone
from drystone.snapshot import _commands

NAMES = ("decomfl", "late-start", "python-stacks-only", "segments-only-fragmented",
         "old-format-full-card", "synthetic-inconsistent", "tiny-cs336", "compile-context",
         "transformer-medium-128-infer", "transformer-medium-512-train")
QUICK = ("tiny-cs336", "compile-context")  # replays of others take long


def ask(words):
    done = subprocess.run([os.environ["DRYSTONE"], *words], capture_output=True, check=False,
                          encoding="utf-8", errors="replace")
    return done.stdout


class Same(unittest.TestCase):
    def same(self, report, words, plain=True):
        """Key by key: attributes, JSON and text are those of the command's `words`."""
        expected = json.loads(ask([*words, "--json"]))
        self.assertEqual(report.to_dict(), expected)
        self.assertEqual(json.loads(report.json), expected)
        self.assertEqual(list(report), list(expected))
        for key, value in expected.items():
            self.walk(getattr(report, key), value)
        if plain:
            self.assertEqual(report.text, ask(words))
            self.assertEqual(str(report), report.text)

    def walk(self, seen, expected):
        if isinstance(expected, dict):
            self.assertEqual(list(seen), list(expected))
            for key, value in expected.items():
                self.walk(seen[key], value)
        elif isinstance(expected, list):
            self.assertEqual(len(seen), len(expected))
            for each, value in zip(seen, expected):
                self.walk(each, value)
        else:
            self.assertEqual(seen, expected)

    def judge(self, path):
        opened = drystone.open(path)
        self.same(opened.info(), ["info", path])
        self.same(opened.top(), ["top", path], plain=False)
        self.same(opened.top(at="peak", by="function", inverted=True, stacks=True, rows=3),
                  ["top", "--at=peak", "--by=function", "-i", "-s", "-n3", path])
        self.same(opened.explain(runs=0), ["explain", "--runs=0", path])
        self.same(opened.explain(at="peak", runs=0), ["explain", "-apeak", "--runs=0", path])
        self.same(opened.explain(compat="2.6"), ["explain", "--compat=2.6", path])
        self.same(opened.top(free=True), ["top", "--free", path])
        self.same(opened.top(free=True, at="end"), ["top", "--free", "--at=end", path], plain=False)
        self.same(opened.steps(capacity="40GiB"), ["steps", "--capacity=40GiB", path])
        self.assertEqual(opened.settings, opened.info().settings)

    def judge_replays(self, path):
        opened = drystone.open(path)
        self.same(opened.replay(), ["replay", path])
        self.same(opened.replay(conf=["", "expandable_segments:True"], place=("torch", "paged"),
                                capacity=40 << 30, find_capacity=True),
                  ["replay", "-c", "", "-c", "expandable_segments:True", "-ptorch", "-ppaged",
                   f"--capacity={40 << 30}", "--find-capacity", path])
        self.same(opened.replay("max_split_size_mb:128", "offline"),
                  ["replay", "-cmax_split_size_mb:128", "-poffline", path])
        self.same(opened.sweep(goal="peak", without=["expandable"], min_gain=4096, runs=4),
                  ["sweep", "--goal=peak", "--without=expandable", "--min-gain=4KiB", "--runs=4",
                   path])
        self.same(opened.explain(at=3), ["explain", "--at=3", path])

    def test_a_snapshot_made_here(self):
        with tempfile.TemporaryDirectory() as folder:
            path = here.write_snapshot(folder)
            self.judge(path)
            self.judge_replays(path)
            other = here.write_snapshot(folder, here.make_snapshot(50), "other.pickle")
            expected = ["diff", path, other]
            self.same(drystone.open(path).diff(other), expected)
            self.same(drystone.open(path).diff(drystone.open(other)), expected)
            self.same(drystone.open(path).diff(other, by="function", min_bytes=0, rows=1),
                      ["diff", "--by=function", "--min=0", "--rows=1", path, other])

    @unittest.skipUnless(here.recordings(), "no recordings")
    def test_a_history_without_completions(self):
        """With skip_actions=["free_completed"] a free counts as complete when it is requested."""
        found = {path.stem: path for path in here.recordings()}
        for name in ("tiny-cs336", "decomfl"):
            value = pickle.loads(found[name].read_bytes())
            whole = drystone.open(value)
            value = {**value, "device_traces": [
                [event for event in events if event["action"] != "free_completed"]
                for events in value["device_traces"]]}
            part = drystone.open(value)
            with self.subTest(name):
                self.assertTrue(part.replay().self_check["exact"])
                self.assertGreater(part.replay().self_check["frees_assumed"], 0)
                self.assertEqual(whole.replay().self_check["frees_assumed"], 0)
                self.assertEqual(part.top("peak").active_bytes, whole.top("peak").active_bytes)

    def test_a_name_from_here(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            here.write_snapshot(folder)
            os.chdir(folder)
            try:
                self.judge("run.pickle")
                self.judge(f"..{os.sep}{os.path.basename(folder)}{os.sep}run.pickle")
            finally:
                os.chdir(before)

    @unittest.skipUnless(here.recordings(), "no recordings")
    def test_recordings(self):
        found = {path.stem: str(path) for path in here.recordings()}
        for name in NAMES:
            with self.subTest(name):
                self.judge(found[name])
        for name in QUICK:
            with self.subTest(name):
                self.judge_replays(found[name])
        full = drystone.open(found["old-format-full-card"])  # its one event is no request
        self.assertEqual(full.explain(runs=0).verdict, "unknown")
        first, second = found["transformer-medium-512-train"], found["transformer-medium-128-infer"]
        self.same(drystone.open(first).diff(second), ["diff", first, second])


class Objects(unittest.TestCase):
    def setUp(self):
        self.opened = drystone.open(here.make_snapshot())
        self.top = self.opened.top()

    def test_a_report_is_made_once(self):
        kept, calls = _commands.run_command, []

        def count(words, *rest):
            calls.append(words)
            return kept(words, *rest)

        _commands.run_command = count
        try:
            opened = drystone.open(here.make_snapshot())
            self.assertEqual(opened.top(at="peak"), opened.top("peak"))
            self.assertNotEqual(opened.top("end"), opened.top("peak"))
        finally:
            _commands.run_command = kept
        self.assertEqual(len(calls), 2)

    def test_attributes_and_keys(self):
        owner = self.top.owners[0]
        self.assertEqual(owner.frame.function, "forward")
        self.assertEqual(owner["bytes"], owner.bytes)
        self.assertIn("bytes", owner)
        self.assertIn("bytes", dir(owner))
        self.assertEqual(dict(owner)["name"], owner.name)
        with self.assertRaisesRegex(AttributeError, "no key 'byts', expected one of name, what"):
            owner.byts
        for made in (copy.copy(owner), copy.deepcopy(owner), pickle.loads(pickle.dumps(owner))):
            self.assertEqual(made, owner)
        mine = self.top.to_dict()
        mine["owners"].clear()
        self.assertTrue(self.top.owners)

    def test_what_people_see(self):
        self.assertRegex(repr(self.top), r"^<drystone top '<dict>': device=0, .*, \.\.\.>$")
        self.assertRegex(repr(self.top.owners[0]), r"^<name='model.py:7 forward', ")
        self.assertRegex(repr(self.opened),
                         "^<drystone snapshot '<dict>': 161 events, 1 segments, 80 blocks>$")

        class Printer:
            said = ""

            def text(self, words):
                self.said += words

        printer = Printer()
        self.top._repr_pretty_(printer, False)
        self.assertEqual(printer.said + "\n", self.top.text)

    def test_refusals_are_the_commands(self):
        for ask_it, words in ((lambda: self.opened.top(by="colour"), "--by"),
                              (lambda: self.opened.explain(at=10 ** 6), "1000000"),
                              (lambda: self.opened.explain(at="--json"), "--json"),
                              (lambda: self.opened.replay(conf="no_such_option:1"), "no_such"),
                              (lambda: self.opened.top(free=True, device=9), "device 9|9")):
            with self.assertRaisesRegex(drystone.Error, words) as caught:
                ask_it()
            self.assertEqual(caught.exception.status, 2)
            self.assertNotIn("/drystone-", str(caught.exception))  # the temporary file's path
        with self.assertRaisesRegex(drystone.Error, "cannot open"):
            self.opened.diff("/no/such/file")

    def test_no_command(self):
        kept = os.environ.pop("DRYSTONE"), os.environ["PATH"]
        os.environ["PATH"] = ""
        try:
            with self.assertRaisesRegex(drystone.Error, "set DRYSTONE to its path"), \
                    unittest.mock.patch("drystone._command.find_own", return_value=None):
                self.opened.steps()
        finally:
            os.environ["DRYSTONE"], os.environ["PATH"] = kept


class Balanced(html.parser.HTMLParser):
    """The tags of a page; each is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Notebook(unittest.TestCase):
    def check(self, page):
        parsed = Balanced(page)
        self.assertEqual(parsed.open, [])
        self.assertLessEqual(parsed.seen, {"div", "b", "p", "table", "tr", "th", "td", "code"})
        self.assertEqual(parsed.attributes, [])
        self.assertLess(len(page), 20000)

    def test_hostile_names_are_text(self):
        evil = "</td><script>alert(1)</script><img src=x onerror='alert(2)'>\"&lt;"
        with tempfile.TemporaryDirectory() as folder:
            path = here.write_snapshot(folder, here.make_snapshot(name=evil), "<b>x.pickle")
            opened = drystone.open(path)
            for report in (opened.info(), opened.top(by="stack"), opened.top(by="function"),
                           opened.explain(runs=0), opened.steps(), opened.top(free=True),
                           opened.replay(), opened.diff(path, at="end"), opened):
                self.check(report._repr_html_())
            top = opened.top(by="stack", stacks=True)._repr_html_()
            self.assertIn("&lt;script&gt;", top)
            self.check(opened.frames._repr_html_())

    def test_sizes_are_for_people(self):
        page = drystone.open(here.make_snapshot()).top()._repr_html_()
        self.assertIn("<th>active_bytes</th><td>82.00 MiB</td>", page)

    def test_long_lists_are_cut(self):
        value = here.make_snapshot(1)
        value["device_traces"] = [[here.make_event(
            "alloc", 512 * i, 512, i, frames=[{"name": "f" * 5000, "filename": f"{i}.py",
                                               "line": i}]) for i in range(1, 3000)]]
        self.check(drystone.open(value).top()._repr_html_())


if __name__ == "__main__":
    here.main()
