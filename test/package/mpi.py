#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command built with MPI says the same, whatever the number of ranks.

    mpi.py TOOL MAKE_FLEET with|without

Runs the command of a build with MPI under mpirun: fleet and sweep, from 1 to 8 ranks, with a store,
and with a rank that dies. Without MPI in the build or Open MPI's mpirun this is skipped.
"""
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

SKIPPED = 77
MPIRUN = ["mpirun", "--oversubscribe"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def is_open_mpi():
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in done.stdout


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.scratch.name)
        cls.tool = pathlib.Path(sys.argv[1]).resolve()
        subprocess.run([sys.argv[2], cls.work / "job", "3", "24", "4", "leak=5", "oom=9"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_tool(self, ranks, *words, tool=None):
        """Status and standard output, of mpirun with so many ranks, or without for 0."""
        start = [*MPIRUN, "-n", str(ranks)] if ranks else []
        done = subprocess.run([*start, tool or self.tool, *map(str, words)], env=ENVIRONMENT,
                              cwd=self.work, capture_output=True, text=True, check=False,
                              timeout=120)
        return done.returncode, done.stdout

    def check_same(self, *words):
        alone = self.run_tool(0, *words)
        self.assertTrue(alone[1])
        for ranks in 1, 2, 4, 8:
            # A finding is no failure of a job: mpirun would say that a rank has crashed.
            wanted = (alone[0] if ranks == 1 else 0, alone[1])
            self.assertEqual(self.run_tool(ranks, *words), wanted, f"{ranks} ranks")

    def test_fleet_is_the_same(self):
        self.check_same("fleet", "job", "--json")

    def test_sweep_is_the_same(self):
        file = sorted((self.work / "job").iterdir())[0]
        self.check_same("sweep", file, "--grid", "max_split_size_mb=default,20:200:x2", "--json")

    def test_a_store_is_gone_on_with(self):
        first = self.run_tool(3, "fleet", "job", "--store", "s.sqlite")
        again = self.run_tool(2, "fleet", "job", "--store", "s.sqlite")
        self.assertEqual(first, again)
        with sqlite3.connect(self.work / "s.sqlite") as store:
            rows = store.execute("select count(*) from result where key like 'row %'").fetchone()
        store.close()
        self.assertEqual(rows, (24,))

    def test_a_job_that_is_killed_is_gone_on_with(self):
        whole = self.run_tool(0, "fleet", "job", "--no-settings", "--json")
        for wait in 0.05, 0.3, 0.6:
            with subprocess.Popen(
                    [*MPIRUN, "-n", "3", self.tool, "fleet", "job", "--no-settings", "--json",
                     "--store", f"{wait}.sqlite"], env=ENVIRONMENT, cwd=self.work,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
                time.sleep(wait)
                job.send_signal(signal.SIGKILL)
            after = self.run_tool(2, "fleet", "job", "--no-settings", "--json", "--store",
                                  f"{wait}.sqlite")
            self.assertEqual(after[1], whole[1])

    def test_ranks_that_see_other_files_are_refused(self):
        """Each rank is told another folder, as on machines without a shared one."""
        (self.work / "other").mkdir(exist_ok=True)
        shutil.copy(sorted((self.work / "job").iterdir())[0], self.work / "other")
        status, said = self.run_tool(1, "fleet", "job", ":", "-n", "1", self.tool, "fleet", "other")
        self.assertNotEqual(status, 0)
        self.assertEqual(said, "")


def main():
    if sys.argv[3] == "without":
        print("SKIPPED: this build found no MPI (libopenmpi-dev)")
        sys.exit(SKIPPED)
    if not shutil.which("mpirun") or not is_open_mpi():
        print("SKIPPED: no mpirun of Open MPI on the path")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
