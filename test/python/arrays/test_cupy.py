#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy's arrays in our memory.

CuPy's runtime is linked into it and wants a real driver, so this is CuPy itself over a pool on a
driver that watches its caller, and the current device and stream are given. What computes is
checked on a GPU by test/gpu/cupy_numba.py.
"""
import gc
import pickle
import threading
import unittest

import here
import driver

cupy = here.need("cupy")

import drystone
import drystone.cupy as ours

class OfNumber:
    """A stream of CuPy's, as far as we look at one."""

    def __init__(self, number):
        self.ptr = number


stream = 0
ours._current = lambda: (0, stream)


class CuPy(unittest.TestCase):
    def setUp(self):
        ours.enable(library=driver.PATH)

    def tearDown(self):
        gc.collect()
        self.assertEqual(ours.used_bytes(), 0)
        ours.pool().verify()
        ours.free_all_blocks()
        self.assertEqual((ours.total_bytes(), driver.misuse()), (0, ""))

    def test_the_last_view_gives_the_block_back(self):
        array = cupy.ndarray((1000, 1000), "float32")
        self.assertEqual(ours.used_bytes(), 4000256)
        self.assertEqual(array.data.mem.size, 4000000)
        part = array[5:, ::2].T
        address = array.data.ptr
        del array
        self.assertEqual(ours.used_bytes(), 4000256)
        del part
        self.assertEqual(ours.used_bytes(), 0)
        self.assertEqual(cupy.ndarray((1000, 1000), "float32").data.ptr, address)

    def test_arrays_without_elements(self):
        array = cupy.ndarray((0, 3), "float32")
        self.assertEqual((array.data.ptr, ours.used_bytes()), (0, 0))

    def test_blocks_belong_to_the_current_stream(self):
        global stream
        first = cupy.ndarray((1 << 20,), "uint8")
        address = first.data.ptr
        stream = driver.make_stream()
        driver.control.hold(0)
        try:
            ours.record_stream(first, stream)
            ours.record_stream(first.data, OfNumber(stream))
            driver.control.hold(stream)
            del first
            self.assertNotEqual(cupy.ndarray((1 << 20,), "uint8").data.ptr, address)
        finally:
            driver.control.complete(stream)
            driver.control.complete(0)
            stream = 0

    def test_out_of_memory_is_cupys_error_with_our_text(self):
        with self.assertRaises(cupy.cuda.memory.OutOfMemoryError) as caught:
            cupy.ndarray((1 << 40,), "uint8")
        error = caught.exception
        self.assertIsInstance(error, (drystone.SpaceError, MemoryError))
        self.assertIn("1.00 TiB on device 0", str(error))
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_pinned_memory(self):
        memory = cupy.cuda.alloc_pinned_memory(100000)
        view = memoryview(memory)
        self.assertEqual((len(view), memory.size()), (100000, 100000))
        view[0] = 1
        self.assertEqual(ours._installed.cache.stats()["requested_bytes.current"], 100000)
        del view, memory
        gc.collect()
        self.assertEqual(ours._installed.cache.stats()["requested_bytes.current"], 0)
        self.assertEqual(cupy.cuda.alloc_pinned_memory(0).size(), 0)

    def test_memory_of_others_has_no_stream(self):
        other = cupy.ndarray((4,), "uint8", memptr=cupy.cuda.MemoryPointer(
            cupy.cuda.UnownedMemory(4096, 4, None, 0), 0))
        with self.assertRaises(drystone.ArgumentError):
            ours.record_stream(other, 0)

    def test_threads(self):
        def work():
            for size in range(1, 500):
                cupy.ndarray((size * 100,), "uint8")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_options_that_cannot_be_install_nothing(self):
        before = ours._installed
        for words in (dict(placement="heap"), dict(placement="torch"), dict(conf="budget:x")):
            with self.assertRaises(ValueError):
                ours.enable(library=driver.PATH, **words)
        self.assertIs(ours._installed, before)


class Disabled(unittest.TestCase):
    def test_cupys_own_pools_come_back(self):
        ours.enable(library=driver.PATH)
        array = cupy.ndarray((1000,), "uint8")
        ours.disable()
        self.assertIn("MemoryPool", repr(cupy.cuda.memory.get_allocator()))
        with self.assertRaises(drystone.Error) as caught:
            ours.used_bytes()
        self.assertIn("enable()", str(caught.exception))
        with self.assertRaises(drystone.Error):
            ours.free_all_blocks()
        del array  # goes to the pool that it came from
        from drystone._pool import pool_of
        self.assertEqual(pool_of(0).stats()["allocated_bytes.all.current"], 0)


if __name__ == "__main__":
    here.main()
