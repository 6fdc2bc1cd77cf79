#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile_budget on a CPU: what is judged, chosen and applied."""
import sys
import unittest

import here
import torch

import whole_models
from drystone import compile_budget
from drystone._library import load_library
from drystone.plan import PlanError


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model, cls.example, _ = whole_models.gpt(layers=2)
        cls.loss = staticmethod(whole_models.of_tokens)
        cls.all = compile_budget(cls.model, cls.example, "100GB", loss=cls.loss,
                                 budgets=[1, 0.5, 0.2, 0])

    def test_every_candidate_is_judged(self):
        self.assertEqual([each.budget for each in self.all.judged], [1, 0.5, 0.2, 0])
        self.assertEqual(self.all.budget, 1)
        saved = [each.saved_bytes for each in self.all.judged]
        self.assertEqual(saved, sorted(saved, reverse=True))
        seconds = [each.seconds for each in self.all.judged]
        self.assertEqual(seconds, sorted(seconds))
        self.assertEqual(len(str(self.all).splitlines()), 5)

    def test_what_is_promised_is_no_peak(self):
        """The least budget saves least and does not peak least: it makes all again at once."""
        peaks = [each.peak_bytes for each in self.all.judged]
        self.assertGreater(peaks[3], peaks[2])
        for each in self.all.judged:
            self.assertEqual(each.promised_bytes,
                             round(each.budget * self.all.judged[0].saved_bytes))

    def test_peaks_have_weights_and_gradients(self):
        weights = sum(p.numel() * 4 for p in self.model.parameters())
        self.assertTrue(all(each.peak_bytes > 2 * weights for each in self.all.judged))

    def test_the_largest_that_fits_is_found(self):
        size = self.all.judged[1].peak_bytes
        found = compile_budget(self.model, self.example, size, loss=self.loss, refine=1)
        self.assertLessEqual(found.peak_bytes, size)
        self.assertGreaterEqual(found.budget, 0.4)
        self.assertFalse(any(each.fits(size) for each in found.judged
                             if each.budget > found.budget))

    def test_an_optimizer_counts(self):
        optimizer = torch.optim.AdamW(self.model.parameters())
        found = compile_budget(self.model, self.example, "100GB", loss=self.loss,
                               optimizer=optimizer, budgets=[1])
        states = 2 * sum(p.numel() * 4 for p in self.model.parameters())
        self.assertGreaterEqual(found.peak_bytes, self.all.peak_bytes + states)

    def test_it_is_applied_and_undone(self):
        from torch._functorch import config
        found = compile_budget(self.model, self.example, self.all.judged[1].peak_bytes,
                               loss=self.loss, budgets=[0.5])
        found.apply()
        self.assertEqual(config.activation_memory_budget, 0.5)
        found.undo()
        self.assertEqual(config.activation_memory_budget, 1.0)
        found.undo()

    def test_nothing_is_changed(self):
        self.assertTrue(all(p.grad is None for p in self.model.parameters()))

    def test_nothing_fits(self):
        with self.assertRaisesRegex(PlanError, "least peak seen is [0-9]+, with 0.2"):
            compile_budget(self.model, self.example, 1000, loss=self.loss, budgets=[1, 0.2])

    def test_wrong_words(self):
        for text, words in (("are parts of 1", {"budgets": [2]}),
                            ("is not a size", {"budget": "x"}),
                            ("at least one step", {"repeats": 0})):
            with self.assertRaisesRegex(PlanError, text):
                compile_budget(self.model, self.example, loss=self.loss, **words)


if __name__ == "__main__":
    library = load_library()
    if library is None or not hasattr(library, "dry_keep_plain"):
        print("SKIPPED: no libdrystone with a knapsack (DRYSTONE_LIBRARY)")
        sys.exit(here.torch_here.SKIPPED)
    unittest.main()
