#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's knapsack from Python, and as the solver of PyTorch's compiler."""
import itertools
import os
import random
import sys
import unittest

import torch_here
import torch

import models
from drystone import plan as dp
from drystone._library import load_library
from drystone.plan._knapsack import solve_memory_budget

SEED = int(os.environ.get("DRY_TEST_SEED", "20261121"))


def best(sizes, times, budget):
    """The most time that can be kept, of all choices."""
    return max(sum(times[i] for i in chosen)
               for count in range(len(sizes) + 1)
               for chosen in itertools.combinations(range(len(sizes)), count)
               if sum(sizes[i] for i in chosen) <= budget)


class Knapsack(unittest.TestCase):
    def test_nothing_is_better(self):
        rng = random.Random(SEED)
        for _ in range(200):
            count = rng.randint(0, 9)
            sizes = [rng.randint(0, 50) for _ in range(count)]
            times = [rng.randint(0, 50) for _ in range(count)]
            budget = rng.randint(0, 150)
            kept = dp.knapsack(sizes, times, budget)
            self.assertLessEqual(sum(sizes[i] for i in kept), budget)
            self.assertEqual(sum(times[i] for i in kept), best(sizes, times, budget), SEED)

    def test_what_it_cannot_take_is_refused(self):
        with self.assertRaisesRegex(dp.PlanError, "2 sizes and 1 times"):
            dp.knapsack([1, 2], [1], 3)
        with self.assertRaises(dp.PlanError):
            dp.knapsack([1 << 63, 1 << 63], [1, 1], 3)

    def test_fractions_as_the_compiler_has_them(self):
        memory, times = [0.5, 0.25, 0.25, 0.1], [3.0, 2.0, 2.5, 0.1]
        self.assertEqual(solve_memory_budget(memory, times, 0.5), ([1, 2], [0, 3]))
        self.assertEqual(solve_memory_budget(memory, times, 0.0), ([], [0, 1, 2, 3]))
        self.assertEqual(solve_memory_budget([], [], 0.5), ([], []))


class Compiler(unittest.TestCase):
    def saved_bytes(self, budget, solver):
        """(bytes that a compiled step saves, its gradients)."""
        from torch._functorch import config
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._functorch.aot_autograd import aot_module
        from torch._functorch.compilers import nop

        torch.manual_seed(3)
        stages = torch.nn.Sequential(*(models.Mlp(32, 128, 0.0) for _ in range(3)))
        example = torch.randn(64, 32, requires_grad=True)
        sizes = {}

        def pack(tensor):
            sizes[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
            return tensor

        with config.patch(activation_memory_budget=budget, activation_memory_budget_solver=solver):
            compiled = aot_module(stages, fw_compiler=nop,
                                  partition_fn=min_cut_rematerialization_partition)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                y = compiled(example)
        y.sum().backward()
        return sum(sizes.values()), example.grad, len(solver.asked) if solver != "dp" else 0

    def test_it_decides_what_is_saved(self):
        solver = dp.solver()
        solver.asked = []
        kind = type(solver)
        original = kind.__call__

        def ask(self, memory, graph, max_memory, info, nodes):
            answer = original(self, memory, graph, max_memory, info, nodes)
            solver.asked.append((memory, max_memory, answer))
            return answer

        kind.__call__ = ask
        some, gradient, asked = self.saved_bytes(0.4, solver)
        self.assertGreater(asked, 0)
        for memory, max_memory, (kept, rest) in solver.asked:
            self.assertLessEqual(sum(memory[i] for i in kept), max_memory + 1e-6)
            self.assertEqual(sorted(kept + rest), list(range(len(memory))))
        theirs, expected, _ = self.saved_bytes(0.4, "dp")
        self.assertTrue(torch.allclose(gradient, expected))
        self.assertLessEqual(some, theirs * 1.05)

    def test_the_cache_knows_it(self):
        self.assertEqual(dp.solver().uuid(), dp.solver().uuid())


if __name__ == "__main__":
    library = load_library()
    if library is None or not hasattr(library, "dry_keep_plain"):
        print("SKIPPED: no libdrystone with a knapsack (DRYSTONE_LIBRARY)")
        sys.exit(torch_here.SKIPPED)
    unittest.main()
