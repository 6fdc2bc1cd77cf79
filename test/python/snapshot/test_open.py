#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drystone.open() takes what it says, and refuses all else in one line."""
import base64
import gc
import gzip
import io
import json
import os
import pathlib
import pickle
import tempfile
import threading
import unittest

import snapshot_here as here
import drystone


def setUpModule():
    """Give this process a folder of its own: other tests run beside it and leave files, too."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    unittest.addModuleCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
    tempfile.tempdir = folder.name


def temporary_files():
    return {name for name in os.listdir(tempfile.gettempdir()) if name.endswith(".trace")}


class Opened(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = here.write_snapshot(self.folder)
        self.expected = list(drystone.open(self.path).events)

    def same(self, given, name):
        opened = drystone.open(given)
        self.assertEqual(list(opened.events), self.expected)
        self.assertEqual(opened.name, name)
        self.assertEqual(opened.top().file, name)
        self.assertIn(name, opened.top().text)
        self.assertEqual(opened.top().active_bytes, 41 * 2 * here.MIB)

    def test_a_path_in_every_form(self):
        self.assertEqual(len(self.expected), 161)
        self.same(pathlib.Path(self.path), self.path)
        self.same(os.fsencode(self.path).decode(), self.path)

    def test_bytes_files_and_objects(self):
        with open(self.path, "rb") as file:
            content = file.read()
        self.same(content, "<bytes>")
        self.same(bytearray(content), "<bytes>")
        self.same(io.BytesIO(content), "<file>")
        with open(self.path, "rb") as file:
            self.same(file, self.path)
        self.same(here.make_snapshot(), "<dict>")
        self.assertEqual(len(drystone.open(here.make_snapshot()["segments"]).segments), 1)

    def test_packed_json_and_html(self):
        packed, text = self.path + ".gz", self.path + ".json"
        with open(self.path, "rb") as file, gzip.open(packed, "wb") as out:
            out.write(file.read())
        with open(text, "w", encoding="utf-8") as out:
            json.dump(here.make_snapshot(), out)
        page = self.path + ".html"
        with open(self.path, "rb") as file, open(page, "w", encoding="utf-8") as out:
            digits = base64.b64encode(file.read()).decode()
            out.write(f'\n<!DOCTYPE html>\n<script>x = [{{"base64": "{digits}"}}]</script>\n')
        for name in (packed, text, page):
            self.same(name, name)

    def test_a_name_like_an_option(self):
        path = here.write_snapshot(self.folder, file="--json")
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            opened = drystone.open("--json")
        finally:
            os.chdir(before)
        self.assertEqual(opened.top().file, "--json")  # though the folder is another one now
        os.unlink(path)

    def test_a_pipe_is_read_once(self):
        path = os.path.join(self.folder, "pipe")
        os.mkfifo(path)
        with open(self.path, "rb") as file:
            content = file.read()
        writer = threading.Thread(target=pathlib.Path(path).write_bytes, args=(content,))
        writer.start()
        self.same(path, path)
        writer.join()

    def test_temporary_files_go_with_their_users(self):
        gc.collect()
        before = temporary_files()
        opened = drystone.open(here.make_snapshot())
        self.assertEqual(len(temporary_files() - before), 1)
        report = opened.info()
        del opened
        gc.collect()
        self.assertIn("<dict>", report.text)  # asked for now: the file is there as long
        del report
        gc.collect()
        self.assertEqual(temporary_files() - before, set())
        with drystone.open(here.make_snapshot()) as opened:
            rows = opened.events
        self.assertEqual(temporary_files() - before, set())
        self.assertEqual(list(rows), self.expected)
        self.assertIn("closed", repr(opened))
        for ask in (lambda: opened.events, opened.info, lambda: opened.diff(self.path)):
            with self.assertRaisesRegex(drystone.Error, "is closed"):
                ask()

    def test_a_file_that_changed_is_said(self):
        opened = drystone.open(self.path)
        opened.info()
        here.write_snapshot(self.folder, here.make_snapshot(3))
        opened.info()  # is kept
        with self.assertRaisesRegex(drystone.Error, "has changed since it was opened"):
            opened.top()
        os.unlink(self.path)
        with self.assertRaisesRegex(drystone.Error, "cannot open"):
            opened.top(free=True)


class Refused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def refuse(self, given, words, offset=None, file=None):
        before = temporary_files()
        with self.assertRaisesRegex(drystone.Error, words) as caught:
            drystone.open(given)
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(caught.exception.offset, offset)
        self.assertEqual(caught.exception.file, file if file is not None else given)
        self.assertEqual(temporary_files(), before)

    def write(self, content):
        path = os.path.join(self.folder, "bad")
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_what_is_no_snapshot(self):
        self.refuse(self.write(b""), "byte 0: the file is empty", 0)
        self.refuse(self.write(b"hello\n"), "byte 0: .*not a known trace or snapshot: expected", 0)
        self.refuse(self.write(pickle.dumps({"segments": 5, "device_traces": []}, 4)),
                    "`segments` is an integer, expected a list", 46)
        self.refuse(self.write(pickle.dumps(os.system)), "names code", 28)

    def test_every_cut(self):
        whole = pickle.dumps(here.make_snapshot(1), 4)
        for end in range(1, len(whole)):
            path = self.write(whole[:end])
            with self.assertRaises(drystone.Error) as caught:
                drystone.open(path)
            self.assertIsNotNone(caught.exception.offset, end)

    def test_what_is_no_file(self):
        self.refuse(self.folder, "a directory, expected a file")
        self.refuse(os.path.join(self.folder, "none"), "cannot open: No such file")
        self.refuse("/dev/null", "neither a file nor a pipe")
        self.refuse("zero\0byte", "cannot open")
        for given in (None, 5, object()):
            with self.assertRaisesRegex(TypeError, "takes a path, bytes, a file"):
                drystone.open(given)
        with self.assertRaisesRegex(TypeError, "opened for bytes"):
            drystone.open(io.StringIO("text"))

    def test_objects_that_are_no_snapshot(self):
        self.refuse({"segments": [], "device_traces": [[object()]]}, "names code|calls|opcode",
                    offset=drystone_offset({"segments": [], "device_traces": [[object()]]}),
                    file="<dict>")
        self.refuse(b"\x80\x04K\x01.", "expected", offset=4, file="<bytes>")

    def test_broken_packing(self):
        whole = gzip.compress(pickle.dumps(here.make_snapshot(), 4))
        self.refuse(self.write(whole[:100]), "gzip stream broken")
        self.refuse(self.write(whole[:-8] + b"12345678"), "gzip stream broken")
        self.refuse(self.write(whole[:20] + b"\xff" * 50), "gzip stream broken")
        self.refuse(self.write(gzip.compress(b"hello\n")), "byte 0 of the unpacked data", 0)
        self.refuse(self.write(b"\x28\xb5\x2f\xfd" + b"\0" * 40), "bad: .*zstd")
        self.refuse(self.write(b'{"segments": 5'), "bad: .*JSON")

    def test_no_library(self):
        from drystone.snapshot import _trace
        kept = _trace.load_library
        _trace.library.cache_clear()
        try:
            _trace.load_library = lambda: None
            with self.assertRaisesRegex(drystone.Error, "set DRYSTONE_LIBRARY"):
                drystone.open(here.make_snapshot())
        finally:
            _trace.load_library = kept
            _trace.library.cache_clear()

    def test_a_reader_that_fails(self):
        class Broken(io.RawIOBase):
            def readable(self):
                return True

            def readinto(self, _buffer):
                raise KeyboardInterrupt

        from drystone.snapshot._trace import Trace
        with self.assertRaises(KeyboardInterrupt):
            Trace(Broken(), 0, "broken")


def drystone_offset(value):
    """The byte of the opcode at which a pickle of `value` is refused."""
    try:
        drystone.open(pickle.dumps(value, 4))
    except drystone.Error as why:
        return why.offset
    raise AssertionError("it was taken")


if __name__ == "__main__":
    here.main()
