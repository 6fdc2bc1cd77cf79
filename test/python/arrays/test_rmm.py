#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RMM's blocks in our memory: its resource itself, over a driver that watches its caller.

RMM's runtime is linked into it and wants a real driver for everything but a resource's own two
functions, so that is what is called here.
"""
import unittest

import here
import driver

here.need("rmm")

import drystone.rmm as ours


class Rmm(unittest.TestCase):
    def test_blocks_come_and_go(self):
        made = ours.resource(library=driver.PATH)
        pool = ours.pool_of(0)
        first, second = made.allocate(1000), made.allocate(100 << 20)
        self.assertEqual(first % 256, 0)
        self.assertEqual(pool.stats()["allocated_bytes.all.current"], 1024 + (100 << 20))
        made.deallocate(first, 1000)
        made.deallocate(second, 100 << 20)
        self.assertEqual(pool.stats()["allocated_bytes.all.current"], 0)
        with self.assertRaises(MemoryError) as caught:
            made.allocate(1 << 45)
        self.assertIn("32.00 TiB on device 0", str(caught.exception))
        pool.verify()
        self.assertEqual(driver.misuse(), "")


if __name__ == "__main__":
    here.main()
