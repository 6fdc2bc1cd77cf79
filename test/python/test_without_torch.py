#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What needs no PyTorch works where there is none: planning, and the knapsack."""
import pathlib
import sys
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(root / "python"))
sys.modules["torch"] = None  # an import of it fails, whether or not it is there

import drystone
from drystone import plan as dp


class WithoutTorch(unittest.TestCase):
    def test_a_chain_is_planned(self):
        stage = {"fwd": 1.0, "bwd": 2.0, "saved": 100, "out": 10}
        chain = {"format": "ckpt-chain/1", "input": {"bytes": 10},
                 "stages": [dict(stage, name=f"s{i}") for i in range(4)]}
        self.assertTrue(dp.plan(chain, 1000)["items"])

    def test_a_knapsack_is_packed(self):
        self.assertEqual(dp.knapsack([3, 4, 5], [4, 5, 10], 8), [0, 2])

    def test_the_rest_says_what_is_missing(self):
        for name in ("measure", "apply", "watch", "verify", "share"):
            self.assertIn(name, dir(dp))
            with self.assertRaises(ModuleNotFoundError) as caught:
                getattr(dp, name)
            self.assertEqual(caught.exception.name, "torch")
        with self.assertRaises(AttributeError):
            dp.no_such_function

    def test_so_do_the_calls_of_one_line(self):
        for name in ("auto_checkpoint", "compile_budget"):
            self.assertIn(name, dir(drystone))
            with self.assertRaises(ModuleNotFoundError) as caught:
                getattr(drystone, name)
            self.assertEqual(caught.exception.name, "torch")
        with self.assertRaises(AttributeError):
            drystone.no_such_function


if __name__ == "__main__":
    unittest.main()
