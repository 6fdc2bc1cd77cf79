#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables say what the pickle says, for every recording; their memory outlives everything."""
import gc
import pickle
import subprocess
import sys
import threading
import unittest

import snapshot_here as here
import drystone

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None


class Plain(pickle.Unpickler):
    """CPython's reader as the judge; nothing that names code is loaded."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return Plain(file).load()


def text(value):
    """Texts of a pickle as tables show them."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


class Events(unittest.TestCase):
    def setUp(self):
        self.given = here.make_snapshot()
        self.opened = drystone.open(self.given)
        self.events = self.opened.events

    def judge(self, opened, whole):
        events = [(device, event) for device, trace in enumerate(whole["device_traces"])
                  for event in trace]
        self.assertEqual(len(opened.events), len(events))
        frames, stacks = list(opened.frames), list(opened.stacks)
        judged = set()  # lists of frames are shared: each is compared once
        for row, (device, event) in zip(opened.events, events):
            self.assertEqual(row.device, device)
            self.assertEqual(row.action, event["action"])
            self.assertEqual(row.address, event.get("addr", event.get("device_free")))
            self.assertEqual((row.size, row.stream), (event["size"], event["stream"]))
            self.assertEqual(row.time_us, event.get("time_us", 0))
            self.assertEqual(row.user_metadata, text(event.get("user_metadata")))
            if (row.stack, id(event.get("frames"))) not in judged:
                judged.add((row.stack, id(event.get("frames"))))
                self.judge_stack(row.stack, event.get("frames"), stacks, frames)

    def judge_stack(self, number, given, stacks, frames):
        if number is None:
            self.assertFalse(given)
            return
        self.assertEqual([tuple(frames[i]) for i in stacks[number].frames],
                         [(text(f["name"]), text(f["filename"]),
                           f["line"] if f["line"] < 2 ** 32 else 0)  # a line not known is -1
                          for f in given or []])

    def test_a_snapshot_made_here(self):
        self.judge(self.opened, self.given)

    @unittest.skipUnless(here.recordings(), "no recordings")
    def test_recordings(self):
        for path in here.recordings():
            whole = load(path)
            with self.subTest(path.name):
                opened = drystone.open(path)
                if isinstance(whole, dict) and path.name != "old-format-full-card.pickle":
                    self.judge(opened, whole)
                self.judge_layout(opened, whole if isinstance(whole, list) else whole["segments"])

    def judge_layout(self, opened, segments):
        segments = sorted(segments, key=lambda segment: segment["device"])
        self.assertEqual(len(opened.segments), len(segments))
        for row, segment in zip(opened.segments, segments):
            self.assertEqual((row.address, row.total_size, row.stream),
                             (segment["address"], segment["total_size"], segment["stream"]))
            self.assertEqual((row.pool_a, row.pool_b),
                             tuple(segment.get("segment_pool_id", (0, 0))))
            self.assertEqual(row.is_large, segment["segment_type"] == "large")
            self.assertEqual(row.is_expandable, segment.get("is_expandable", False))
            blocks = opened.blocks[row.first_block:row.first_block + row.block_count]
            self.assertEqual([block.size for block in blocks],
                             [block["size"] for block in segment["blocks"]])
            self.assertEqual([block.state.replace("awaiting", "pending") for block in blocks],
                             [block["state"].replace("awaiting", "pending")
                              for block in segment["blocks"]])
            self.assertEqual({block.device for block in blocks}, {segment["device"]})

    def test_rows_and_columns_of_python(self):
        events, size = self.events, self.events.columns["size"]
        self.assertEqual(events[0].action, "segment_alloc")
        self.assertEqual(events[-1], events[len(events) - 1])
        self.assertEqual(events[2:9:3], [events[2], events[5], events[8]])
        self.assertEqual(events[5:2], [])
        self.assertEqual(list(size)[1], size[1])
        self.assertEqual(size[1:3], [2 * here.MIB] * 2)
        self.assertEqual(events.columns["action"][-2:], ["free_requested", "free_completed"])
        self.assertEqual(set(events.columns["user_metadata"]),
                         {None, "layer 0", "layer 1", "layer 2"})
        self.assertEqual(events.columns["user_metadata"].labels, ["layer 0", "layer 1", "layer 2"])
        for index in (len(events), -len(events) - 1):
            with self.assertRaises(IndexError):
                events[index]
        with self.assertRaises(TypeError):
            size.values[0] = 1
        self.assertEqual(self.opened.stack(None), [])
        self.assertEqual([frame.name for frame in self.opened.stack(events[1].stack)],
                         ["forward", "step"])
        self.assertIn("161 rows of action, device", repr(events))
        self.assertEqual(self.opened.settings.conf, "")

    def test_nothing_at_all(self):
        opened = drystone.open({"segments": [], "device_traces": []})
        for table in (opened.events, opened.segments, opened.blocks, opened.devices,
                      opened.annotations, opened.frames):
            self.assertEqual((len(table), list(table), table[:]), (0, [], []))
            self.assertTrue(table._repr_html_().startswith("<table>"))

    def test_numbers_at_their_ends(self):
        most = 2 ** 64 - 1
        event = here.make_event("alloc", most, most, 2 ** 63 - 1)
        event["stream"] = most
        opened = drystone.open({"segments": [], "device_traces": [[], [event]]})
        row = opened.events[0]
        self.assertEqual((row.device, row.address, row.size, row.stream, row.time_us),
                         (1, most, most, most, 2 ** 63 - 1))

    def test_texts_that_are_no_unicode(self):
        event = here.make_event("alloc", 512, 512, 1, user_metadata="a\udc80\ud800<b>")
        column = drystone.open({"segments": [], "device_traces": [[event]]}).events.columns
        self.assertEqual(column["user_metadata"][0], "a\\udc80\\ud800<b>")

    def test_a_hostile_text_is_escaped_in_a_notebook(self):
        name = "<script>alert('x')</script>\" onload=\""
        event = here.make_event("alloc", 512, 512, 1, user_metadata=name)
        page = drystone.open({"segments": [], "device_traces": [[event]]}).events._repr_html_()
        self.assertNotIn("<script", page)
        self.assertNotIn('" onload', page)
        self.assertIn("&lt;script&gt;", page)


@unittest.skipUnless(numpy, "no numpy")
class Numpy(unittest.TestCase):
    def setUp(self):
        self.opened = drystone.open(here.make_snapshot())

    def test_a_column_is_no_copy_and_cannot_be_written(self):
        column = self.opened.events.columns["size"]
        first, second = column.to_numpy(), numpy.asarray(column)
        self.assertEqual(first.dtype, numpy.uint64)
        self.assertTrue(numpy.shares_memory(first, second))
        self.assertEqual(first.tolist(), list(column))
        with self.assertRaises(ValueError):
            first[0] = 1
        self.assertEqual(numpy.asarray(column, dtype="f8").dtype, numpy.float64)

    def test_a_structured_array(self):
        made = self.opened.events.to_numpy()
        self.assertEqual(made["size"].tolist(), list(self.opened.events.columns["size"]))
        self.assertEqual(self.opened.events.columns["action"].labels[made["action"][0]],
                         "segment_alloc")
        self.assertEqual(made.dtype["stack"], numpy.uint32)
        self.assertEqual(self.opened.segments.to_numpy()["is_large"].tolist(), [True])
        lists = self.opened.stacks.columns["frames"].to_numpy()
        self.assertEqual([tuple(each) for each in lists],
                         list(self.opened.stacks.columns["frames"]))

    def test_memory_outlives_the_snapshot(self):
        arrays = []
        for i in range(20):
            opened = drystone.open(here.make_snapshot(10 + i))
            arrays.append((opened.events.columns["address"].to_numpy(),
                           opened.frames.columns["line"].values,
                           list(opened.events.columns["address"])))
            opened.close()
            del opened
            gc.collect()
        for addresses, lines, expected in arrays:
            self.assertEqual(addresses.tolist(), expected)
            self.assertEqual(list(lines), [7, 12])

    @unittest.skipUnless(pandas, "no pandas")
    def test_pandas(self):
        frame = self.opened.events.to_pandas()
        self.assertEqual(len(frame), 161)
        self.assertEqual(frame["action"].iloc[0], "segment_alloc")
        self.assertEqual(frame.groupby("action", observed=True)["size"].sum()["alloc"],
                         80 * 2 * here.MIB)
        self.assertEqual(int(frame["stack"].isna().sum()), 80)
        self.assertEqual(frame["user_metadata"].dropna().iloc[0], "layer 0")


class Threads(unittest.TestCase):
    def test_many_at_once(self):
        opened, seen, failed = drystone.open(here.make_snapshot()), [], []

        def work():
            try:
                seen.append((opened.events.columns["size"], sum(opened.events.columns["size"]),
                             opened.top(by="function").active_bytes))
            except Exception as why:
                failed.append(why)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(len(seen), 8)
        self.assertEqual(len({(id(column), size, active) for column, size, active in seen}), 1)


class End(unittest.TestCase):
    def test_the_interpreter_ends_with_tables_alive(self):
        program = ("import snapshot_here, drystone\n"
                   "s = drystone.open(snapshot_here.make_snapshot())\n"
                   "s.me, t = s, s.events.columns['size']\n"
                   "capsule = s.events.__arrow_c_stream__()\n"
                   "print(len(t))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              cwd=here.ROOT / "test/python/snapshot", check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "161\n", ""))



if __name__ == "__main__":
    here.main()
