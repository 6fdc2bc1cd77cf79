#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes keep the numbers of a program where they say so, and say why they are not made."""
import unittest

import here
from here import distance, run, run_hooked, run_plain

NEAR = 1e-6  # float32: sums in another order


class Changed(unittest.TestCase):
    def same(self, program, changes, near=NEAR):
        result, plain = run(program, changes), run_plain(program)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(sorted(result.told["applied"]), sorted(changes), result.told)
        self.assertEqual(result.told["refused"], {})
        self.assertLess(distance(plain.kept, result.kept), near)
        return result, plain

    def refused(self, program, changes, why):
        result = run(program, changes)
        self.assertEqual([*result.told["applied"]], [])
        self.assertEqual([*result.told["refused"]], [*changes])
        self.assertRegex(result.told["refused"][[*changes][0]], why)
        return result


class Checkpoint(Changed):
    def test_same_numbers(self):
        for program in ("plain", "whole", "dicts", "dropout", "batch_norm"):
            with self.subTest(program):
                self.same(program, {"checkpoint": 4}, 1e-7)

    def test_the_first_layers(self):
        result, _ = self.same("plain", {"checkpoint": 2}, 1e-7)
        self.assertEqual(result.told["applied"]["checkpoint"], "checkpoint 2 of 4 layers")

    def test_more_work_is_counted(self):
        flops = [run("plain", changes, looks=True).told["flops"]
                 for changes in ({}, {"checkpoint": 2}, {"checkpoint": 4})]
        self.assertLess(flops[0], flops[1])
        self.assertAlmostEqual(flops[2] - flops[1], flops[1] - flops[0])

    def test_refused(self):
        self.refused("no_layers", {"checkpoint": 1}, "no model with a list of layers")
        self.refused("plain", {"checkpoint": 9}, "4 layers, not 9")
        result = self.refused("in_place", {"checkpoint": 4}, "alter their inputs")
        self.assertNotEqual(result.code, 0)


class MicroBatches(Changed):
    def test_same_numbers(self):
        for program in ("plain", "adam", "whole", "dicts", "nested"):
            for count in (2, 5):
                with self.subTest(program, count=count):
                    result, plain = self.same(program, {"micro_batches": count}, 1e-5)
                    self.assertEqual(result.out, plain.out)

    def test_batch_statistics_are_those_of_pieces(self):
        plain, result = run_plain("batch_norm"), run("batch_norm", {"micro_batches": 2})
        self.assertGreater(distance(plain.kept, result.kept), 1e-3)
        self.assertIn("statistics", result.told["applied"]["micro_batches"])

    def test_refused(self):
        for program, why in (("accumulates", "accumulates gradients by itself"),
                             ("no_loader", "no DataLoader"), ("one_row", "one row"),
                             ("two_steps", "more than once a batch"),
                             ("by_hand", "alters gradients"), ("sums", "is a sum")):
            with self.subTest(program):
                self.refused(program, {"micro_batches": 2}, why)
        self.refused("plain", {"micro_batches": 1}, "two pieces or more")


class Together(Changed):
    def test_changes_join(self):
        self.same("whole", {"checkpoint": 4, "micro_batches": 3}, 1e-5)

    def test_settings_join(self):
        result = run_hooked("settings", {"allocator": "expandable_segments:True"})
        self.assertIn("conf expandable_segments:True None", result.out, result.err)
        self.assertEqual([*result.told["applied"]], ["allocator"])

    def test_the_hook_begins(self):
        result = run_hooked("whole", {"checkpoint": 4})
        self.assertEqual(result.told["applied"], {"checkpoint": "checkpoint 4 of 4 layers"})
        self.assertLess(distance(run_plain("whole").kept, result.kept), NEAR)

    def test_an_unknown_name_is_refused(self):
        self.refused("settings", {"chekpoint": 4}, "no such change; there are allocator, ")


class Looks(unittest.TestCase):
    def test_nothing_is_altered(self):
        for program in ("plain", "whole", "nested", "accumulates", "two_steps", "by_hand",
                        "batch_norm", "in_place", "no_loader"):
            with self.subTest(program):
                plain, result = run_plain(program), run(program, looks=True)
                self.assertEqual(distance(plain.kept, result.kept), 0)
                self.assertEqual((result.out, result.told["applied"]), (plain.out, {}))
                self.assertEqual(result.told["notes"], [])

    def test_what_helps_is_offered(self):
        result = run("plain", looks=True)
        offer = result.offer("checkpoint")
        self.assertEqual((offer["values"], offer["text"], offer["numbers"], offer["helps"]),
                         ([1, 2, 3, 4], "checkpoint {} of 4 layers", "same", "backward"))
        self.assertEqual(result.offer("micro_batches")["values"], [2, 4, 8])
        self.assertEqual(result.offer("allocator")["values"], ["expandable_segments:True"])
        self.assertEqual(run("batch_norm", looks=True).offer("micro_batches")["numbers"], "batch")

    def test_what_does_not_is_not(self):
        for program, name in (("accumulates", "micro_batches"), ("two_steps", "micro_batches"),
                              ("in_place", "checkpoint"), ("no_layers", "checkpoint"),
                              ("one_row", "micro_batches"), ("sums", "micro_batches")):
            with self.subTest(program):
                self.assertIsNone(run(program, looks=True).offer(name))


if __name__ == "__main__":
    here.main()
