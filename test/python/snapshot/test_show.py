#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drystone.show() gives the page of `drystone view -o`, and a notebook keeps it apart."""
import html.parser
import json
import os
import pickle
import re
import tempfile
import unittest

import snapshot_here as here
import drystone


class Frames(html.parser.HTMLParser):
    """The frames of a text, and everything else that is an element."""

    def __init__(self, text):
        super().__init__()
        self.frames, self.others = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        (self.frames if tag == "iframe" else self.others).append(dict(attrs))


class Shown(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = here.write_snapshot(self.folder)

    def answers(self, page):
        return json.loads(re.search(r'id="answers">(.*?)</script>', page.html, re.S).group(1))

    def test_the_page_is_the_command_s(self):
        page = drystone.show(self.path, what_if=False)
        self.assertIn("about", self.answers(page))
        self.assertNotIn("0/sweep", self.answers(page))
        self.assertIn("0/sweep", self.answers(drystone.show(self.path)))
        self.assertIn("run.pickle", repr(page))
        target = os.path.join(self.folder, "page.html")
        page.save(target)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), page.html)

    def test_snapshots_and_what_is_no_path(self):
        with drystone.open(self.path) as snapshot:
            two = self.answers(drystone.show(snapshot, here.make_snapshot(), what_if=False))
        self.assertIn("1/0/tile/0/0", two)
        with self.assertRaises(drystone.Error):
            drystone.show(snapshot)

    def test_a_notebook_gets_one_frame(self):
        hostile = here.make_snapshot(name='"><script>alert(1)</script>')
        shown = Frames(drystone.show(hostile, what_if=False, height=500)._repr_html_())
        self.assertEqual(len(shown.frames), 1)
        self.assertEqual(shown.others, [])
        frame = shown.frames[0]
        self.assertEqual(frame["sandbox"], "allow-scripts")
        self.assertIn("height:500px", frame["style"])
        self.assertIn("id=\"answers\"", frame["srcdoc"])

    def test_what_is_refused(self):
        with self.assertRaisesRegex(drystone.Error, "absent"):
            drystone.show(os.path.join(self.folder, "absent"))
        broken = os.path.join(self.folder, "broken.pickle")
        with open(broken, "wb") as file:
            file.write(pickle.dumps([print]))
        with self.assertRaises(drystone.Error):
            drystone.show(broken)
        with self.assertRaises(drystone.Error):
            drystone.show(self.path, max_bytes=1)


if __name__ == "__main__":
    unittest.main()
