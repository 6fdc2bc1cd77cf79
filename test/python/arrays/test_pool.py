#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pool that CuPy, Numba and RMM share, over a driver that watches its caller."""
import gc
import threading
import unittest

import here
import driver

from drystone import ArgumentError, Error, SpaceError
from drystone import _pool
from drystone._pinned import PinnedCache
from drystone._pool import Pool, pool_for, text_of

OUT_OF_MEMORY, UNKNOWN = 2, 999


def in_use(pool):
    return pool.stats()["allocated_bytes.all.current"]


class Blocks(unittest.TestCase):
    def setUp(self):
        self.pool = Pool(library=driver.PATH)

    def tearDown(self):
        self.pool.verify()
        self.pool.empty_cache()
        self.assertEqual(self.pool.stats()["reserved_bytes.all.current"], 0)
        self.assertEqual(driver.misuse(), "")

    def test_blocks_come_and_go(self):
        addresses = [self.pool.alloc(size) for size in (1, 512, 3 << 20, 100 << 20)]
        self.assertEqual(len(set(addresses)), 4)
        self.assertTrue(all(address % 512 == 0 for address in addresses))
        self.assertGreaterEqual(in_use(self.pool), 103 << 20)
        for address in addresses:
            self.pool.free(address)
        self.assertEqual(in_use(self.pool), 0)
        self.assertEqual(self.pool.alloc(0), 0)
        self.pool.free(0)

    def test_a_block_waits_for_a_stream_that_was_recorded(self):
        stream = driver.make_stream()
        driver.control.hold(stream)
        address = self.pool.alloc(64 << 20)
        self.pool.record_stream(address, stream)
        self.pool.free(address)
        other = self.pool.alloc(64 << 20)
        self.assertNotEqual(other, address)
        self.assertEqual(self.pool.stats()["active_bytes.all.current"], 128 << 20)
        driver.control.complete(stream)
        self.pool.free(other)
        self.pool.empty_cache()
        self.assertEqual(self.pool.stats()["active_bytes.all.current"], 0)
        self.pool.stream_waits(stream, 0)

    def test_out_of_memory_says_who_has_it(self):
        held = self.pool.alloc(600 << 20)
        with self.assertRaises(MemoryError) as caught:
            self.pool.alloc(600 << 20)
        text = str(caught.exception)
        self.assertIsInstance(caught.exception, SpaceError)
        self.assertIn("600.00 MiB on device 0: the largest block to be had is 424.00 MiB", text)
        self.assertIn("600.00 MiB in use", text)
        self.assertIn("of 1.00 GiB free", text)
        self.assertNotIn("\n", text)
        self.pool.free(held)
        self.pool.free(self.pool.alloc(600 << 20))

    def test_garbage_is_collected_before_a_refusal(self):
        class Ring:
            def __init__(self, pool, address):
                self.ring, self.pool, self.address = self, pool, address

            def __del__(self):
                self.pool.free(self.address)
        Ring(self.pool, self.pool.alloc(600 << 20))
        gc.disable()
        try:
            self.pool.free(self.pool.alloc(600 << 20))
        finally:
            gc.enable()

    def test_limits_and_room(self):
        self.pool.set_limit(64 << 20)
        with self.assertRaises(SpaceError) as caught:
            self.pool.alloc(65 << 20)
        self.assertIn("limit 64.00 MiB", str(caught.exception))
        self.pool.set_limit(None)
        address = self.pool.alloc(65 << 20)
        memory_info = self.pool.memory_info()
        self.assertEqual(memory_info.total, 1 << 30)
        self.assertLess(memory_info.free, memory_info.total)
        self.pool.free(address)
        self.pool.reset_peaks()
        self.assertEqual(self.pool.stats()["allocated_bytes.all.peak"], 0)

    def test_addresses_that_are_none(self):
        with self.assertRaises(ArgumentError):
            self.pool.record_stream(12345, 0)
        with self.assertRaises(Error):
            self.pool.alloc(1 << 62)
        self.pool.free(12345)

    def test_threads(self):
        def work(stream):
            for size in range(1, 2000):
                self.pool.free(self.pool.alloc(size * 97, stream))
        threads = [threading.Thread(target=work, args=(stream,))
                   for stream in (0, driver.make_stream(), driver.make_stream())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(in_use(self.pool), 0)

    def test_every_driver_call_may_fail(self):
        for code in (OUT_OF_MEMORY, UNKNOWN):
            refused = 0
            for index in range(12):
                driver.control.fail_at(index, code)
                held = []
                for size in (3 << 20, 30 << 20, 1000):
                    try:
                        held.append(self.pool.alloc(size))
                    except Error:
                        refused += 1
                self.assertTrue(all(held))
                driver.control.fail_at(10 ** 9, 0)
                for address in held:
                    self.pool.free(address)
                self.pool.empty_cache()
                self.pool.verify()
            if code == UNKNOWN:  # a device that is full once is asked again
                self.assertGreater(refused, 0)

    def test_a_child_is_told(self):
        self.pool.free(self.pool.alloc(1000))

        def work():
            try:
                self.pool.alloc(10 << 20)
            except Error as why:
                return 0 if "child of a fork" in str(why) else 1
            return 2
        self.assertEqual(here.run_child(work), 0)


class Shared(unittest.TestCase):
    def test_a_device_has_one_pool(self):
        pool = pool_for(0, library=driver.PATH)
        self.assertIs(pool_for(0), pool)
        self.assertIs(_pool.pool_of(0), pool)
        with self.assertRaises(ArgumentError) as caught:
            pool_for(0, "torch")
        self.assertIn("'paged'", str(caught.exception))
        with self.assertRaises(Error):
            _pool.pool_of(5)

    def test_what_cannot_be_opened(self):
        for words in (dict(placement="heap"), dict(conf="nonsense:1"), dict(device=7),
                      dict(library="/nowhere/libcuda.so.1"), dict(device=-1)):
            with self.assertRaises(Error) as caught:
                Pool(**{"library": driver.PATH, **words})
            self.assertNotIn("\n", str(caught.exception))
        pool = Pool(placement="torch", conf="expandable_segments:True", library=driver.PATH)
        pool.free(pool.alloc(5 << 20))
        pool.empty_cache()

    def test_sizes_as_text(self):
        self.assertEqual([text_of(n) for n in (0, 1023, 1536, 3 << 40, 5 << 50)],
                         ["0 bytes", "1023 bytes", "1.50 KiB", "3.00 TiB", "5120.00 TiB"])


class Pinned(unittest.TestCase):
    def test_blocks_of_a_cache(self):
        cache = PinnedCache("cuda", library=driver.PATH)
        address = cache.alloc(100000)
        cache.record_stream(address, 0)
        self.assertGreaterEqual(cache.stats()["active_bytes.current"], 100000)
        cache.free(address)
        with self.assertRaises(ArgumentError):
            cache.record_stream(address + 1, 0)
        cache.clear()
        self.assertEqual(cache.stats()["allocated_bytes.current"], 0)
        with self.assertRaises(ArgumentError):
            PinnedCache("cuda", conf="mode:heap", library=driver.PATH)
        PinnedCache("cuda", conf="mode:buddy,block_mb:2,block_count:1", library=driver.PATH)
        with self.assertRaises(SpaceError):
            PinnedCache("cuda", budget_bytes=1 << 20, library=driver.PATH).alloc(1 << 30)


if __name__ == "__main__":
    here.main()
