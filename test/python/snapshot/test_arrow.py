#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data frames take tables, keep them, and give them back whenever and wherever they like."""
import gc
import os
import subprocess
import sys
import threading
import unittest

import snapshot_here as here
import drystone
from drystone.snapshot import _arrow

try:
    import pyarrow
except ImportError:
    pyarrow = None
try:
    import polars
except ImportError:
    polars = None
try:
    import duckdb
except ImportError:
    duckdb = None

TABLES = ("events", "segments", "blocks", "devices", "annotations", "stacks", "frames")


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Capsules(unittest.TestCase):
    """What needs no data frame."""

    def test_streams_that_nobody_takes_are_given_back(self):
        opened = drystone.open(here.make_snapshot(2000))
        for _ in range(3):
            opened.events.__arrow_c_stream__()
        before = resident()
        for _ in range(200):  # of 500 kB each
            opened.events.__arrow_c_stream__()
            opened.events.__arrow_c_schema__()
        self.assertLess(resident() - before, 20 << 20)
        self.assertLessEqual(len(_arrow._out), 2)

    def test_a_capsule_that_is_held_stays(self):
        events = drystone.open(here.make_snapshot()).events
        held = [events.__arrow_c_stream__() for _ in range(5)]
        gc.collect()
        events.__arrow_c_stream__()
        self.assertEqual(sum(bool(struct.release) for _, struct, _ in _arrow._out), 6)
        del held
        events.__arrow_c_stream__()
        self.assertEqual(len(_arrow._out), 1)


@unittest.skipUnless(pyarrow, "no pyarrow")
class Pyarrow(unittest.TestCase):
    def same(self, opened):
        for name in TABLES:
            table = getattr(opened, name)
            made = pyarrow.table(table)
            made.validate(full=True)
            self.assertEqual(made.num_rows, len(table))
            self.assertEqual(made.column_names, list(table.columns))
            for column in made.column_names:
                self.assertEqual(
                    [tuple(each) if isinstance(each, list) else each
                     for each in made[column].to_pylist()], list(table.columns[column]))

    def test_every_value(self):
        self.same(drystone.open(here.make_snapshot()))
        self.same(drystone.open({"segments": [], "device_traces": []}))

    @unittest.skipUnless(here.recordings(), "no recordings")
    def test_recordings(self):
        for path in here.recordings():
            with self.subTest(path.name):
                self.same(drystone.open(path))

    def test_a_schema_alone(self):
        schema = pyarrow.schema(drystone.open(here.make_snapshot()).blocks)
        self.assertEqual(schema.field("size").type, pyarrow.uint64())
        self.assertFalse(schema.field("size").nullable)
        self.assertTrue(schema.field("stack").nullable)

    def test_a_table_outlives_the_snapshot(self):
        opened = drystone.open(here.make_snapshot())
        made, expected = pyarrow.table(opened.events), list(opened.events.columns["size"])
        column = made["user_metadata"].chunk(0)
        opened.close()
        del opened
        gc.collect()
        self.assertEqual(made["size"].to_pylist(), expected)
        del made
        gc.collect()
        self.assertEqual(column[1].as_py(), "layer 0")

    def test_released_while_an_exception_is_handled(self):
        events = drystone.open(here.make_snapshot()).events
        with self.assertRaises(ZeroDivisionError):
            print(pyarrow.table(events), 1 // 0)
        self.assertEqual(pyarrow.table(events).num_rows, 161)

    def test_released_on_other_threads(self):
        events, failed = drystone.open(here.make_snapshot()).events, []

        def work():
            try:
                for _ in range(50):
                    pyarrow.table(events).slice(3, 9).combine_chunks()
            except Exception as why:
                failed.append(why)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_the_interpreter_ends_with_tables_alive(self):
        program = ("import sys, pyarrow, snapshot_here, drystone\n"
                   "class Cycle: pass\n"
                   "c = Cycle(); c.me = c\n"
                   "c.table = pyarrow.table(drystone.open(snapshot_here.make_snapshot()).events)\n"
                   "c.reader = pyarrow.RecordBatchReader.from_stream(\n"
                   "    drystone.open(snapshot_here.make_snapshot()).events)\n"
                   "sys.keep = c\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              cwd=here.ROOT / "test/python/snapshot", check=False,
                              env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Others(unittest.TestCase):
    def setUp(self):
        self.opened = drystone.open(here.make_snapshot())

    @unittest.skipUnless(polars, "no polars")
    def test_polars(self):
        for name in TABLES:
            table = getattr(self.opened, name)
            self.assertEqual(polars.DataFrame(table).height, len(table))
        frame = polars.DataFrame(self.opened.events)
        self.assertEqual(frame["size"].to_list(), list(self.opened.events.columns["size"]))
        self.assertEqual(frame["action"].cast(polars.String).to_list(),
                         list(self.opened.events.columns["action"]))
        self.assertEqual(frame["user_metadata"].cast(polars.String).to_list(),
                         list(self.opened.events.columns["user_metadata"]))
        self.assertEqual(frame["stack"].null_count(), 80)

    @unittest.skipUnless(duckdb and pyarrow, "no duckdb, or no pyarrow")
    def test_duckdb(self):
        events, frames = self.opened.events, self.opened.frames
        self.assertTrue(events and frames)  # the queries name them
        rows = duckdb.sql("SELECT action, count(*), sum(size) FROM events "
                          "GROUP BY action ORDER BY action").fetchall()
        self.assertEqual(rows, [("alloc", 80, 160 * here.MIB),
                                ("free_completed", 40, 80 * here.MIB),
                                ("free_requested", 40, 80 * here.MIB),
                                ("segment_alloc", 1, 160 * here.MIB)])
        self.assertEqual(duckdb.sql("SELECT name FROM frames WHERE line = 7").fetchall(),
                         [("forward",)])
        for _ in range(3):  # a table is read again
            self.assertEqual(duckdb.sql("SELECT count(stack) FROM events").fetchall(), [(81,)])


if __name__ == "__main__":
    here.main()
