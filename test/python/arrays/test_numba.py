#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numba's arrays in our memory: numba-cuda itself over the stand-in of the dry run.

The driver and the runtime that it looks for are links to $DRY_TEST_STANDIN in a folder, and the
program begins once more with that folder where the loader looks.
"""
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import here

NAMES = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")


def begin_again():
    """Run this program over the stand-in; end as the program does."""
    standin = os.environ.get("DRY_TEST_STANDIN")
    if not standin:
        print("SKIPPED: no stand-in in DRY_TEST_STANDIN")
        sys.exit(here.SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            (pathlib.Path(folder) / name).symlink_to(standin)
        environment = dict(os.environ, DRY_TEST_OVER_STANDIN="1", LD_LIBRARY_PATH=folder,
                           PYTHONPATH=str(here.ROOT / "python"))
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment,
                                check=False).returncode)


if not os.environ.get("DRY_TEST_OVER_STANDIN"):
    begin_again()

numpy = here.need("numpy")
here.need("numba_cuda")
from numba import cuda

import drystone
import drystone.numba as ours

PLACEMENT = os.environ.get("DRY_TEST_PLACEMENT", "paged")


def in_use():
    return ours.pool().stats()["allocated_bytes.all.current"]


class Numba(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ours.enable(PLACEMENT)

    def tearDown(self):
        gc.collect()
        self.assertEqual(in_use(), 0)
        ours.pool().verify()

    def test_arrays_come_and_go(self):
        array = cuda.device_array((1000, 1000), "float32")
        self.assertEqual(in_use(), 4000256)
        part = array[5:]
        del array
        self.assertEqual(in_use(), 4000256)
        del part

    def test_copies_there_and_back(self):
        host = numpy.arange(1000.0)
        array = cuda.to_device(host)
        self.assertTrue((array.copy_to_host() == host).all())
        stream = cuda.stream()
        with cuda.pinned(host):
            array = cuda.to_device(host, stream=stream)
            stream.synchronize()
        ours.record_stream(array, stream)
        with self.assertRaises(ValueError):
            ours.pool().record_stream(17, 0)

    def test_pinned_memory_is_a_block_of_our_cache(self):
        cache = ours._pinned_cache(0)
        array = cuda.pinned_array(1000, "float32")
        array[:] = 1
        self.assertEqual(cache.stats()["requested_bytes.current"], 4000)
        mapped = cuda.mapped_array(10, "float32")
        mapped[:] = 2
        self.assertEqual((array.sum(), mapped.sum()), (1000, 20))
        self.assertEqual(cache.stats()["requested_bytes.current"], 4040)
        del array, mapped
        gc.collect()
        cache.clear()  # looks at the events that the blocks wait for
        self.assertEqual(cache.stats()["requested_bytes.current"], 0)
        self.assertTrue(cuda.current_context().memhostalloc(1000, wc=True))
        self.assertEqual(cache.stats()["requested_bytes.current"], 0)

    def test_out_of_memory(self):
        with self.assertRaises(MemoryError) as caught:
            cuda.device_array(1 << 42, "uint8")
        self.assertIsInstance(caught.exception, drystone.SpaceError)
        self.assertIn("4.00 TiB on device 0", str(caught.exception))

    def test_memory_info(self):
        before = cuda.current_context().get_memory_info()
        array = cuda.device_array(100 << 20, "uint8")
        after = cuda.current_context().get_memory_info()
        self.assertEqual(before.total, after.total)
        self.assertLessEqual(after.free, before.free)
        self.assertGreater(array.size, 0)

    def test_ipc_handles_are_refused_by_paged(self):
        if PLACEMENT != "paged":
            self.skipTest("the stand-in has no IPC")
        with self.assertRaises(drystone.Error) as caught:
            cuda.device_array(10).get_ipc_handle()
        self.assertIn("placement='torch'", str(caught.exception))

    def test_reset_gives_cached_memory_back(self):
        cuda.device_array(100 << 20, "uint8")
        gc.collect()
        cuda.current_context().reset()
        self.assertEqual(ours.pool().stats()["reserved_bytes.all.current"], 0)


class Settings(unittest.TestCase):
    def run_python(self, program, **environment):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env=dict(os.environ, **environment), check=False)
        return done.stdout + done.stderr

    def test_by_the_environment(self):
        text = self.run_python(
            here.BEGIN + "from numba import cuda\na = cuda.device_array(1000, 'uint8')\n"
            "import drystone.numba\n"
            "print(drystone.numba.pool().stats()['allocated_bytes.all.current'])",
            NUMBA_CUDA_MEMORY_MANAGER="drystone.numba")
        self.assertEqual(text.strip(), "1024")

    def test_a_freed_block_waits_for_every_stream(self):
        """Work that nobody waits for is not over in this run: so memory must not come again."""
        text = self.run_python(
            here.BEGIN + "from numba import cuda\nimport numpy, drystone.numba\n"
            "drystone.numba.enable()\n"
            "address = lambda a: a.__cuda_array_interface__['data'][0]\n"
            "a = cuda.device_array(1 << 22, 'uint8')\nstream = cuda.stream()\n"
            "cuda.to_device(numpy.zeros(1 << 22, 'uint8'), stream, to=a)\n"
            "first = address(a)\ndel a\n"
            "b = cuda.device_array(1 << 22, 'uint8')\nprint(address(b) == first)\n"
            "cuda.synchronize()\n"
            "print(address(cuda.device_array(1 << 22, 'uint8')) == first)\n",
            DRYSTONE_STANDIN="late=1")
        self.assertEqual(text.split(), ["False", "True"])

    def test_too_late_is_refused(self):
        text = self.run_python(
            here.BEGIN + "from numba import cuda\na = cuda.device_array(10)\n"
            "import drystone.numba\ndrystone.numba.enable()")
        self.assertIn("before a device is used", text)

    def test_words_that_mean_nothing(self):
        with self.assertRaises(ValueError):
            ours.enable("heap")


if __name__ == "__main__":
    here.main()
