#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone estimate` against what autograd saves: a layer of each architecture, on a CPU.

The formulas are of a GPU, which keeps a byte an element of a dropout's mask; a CPU keeps noise as
wide as the activations, so they are told that.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch_here
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import architectures
from command_here import find_command, has_command
from drystone import plan as dp
from drystone.plan._measure import Runner
from drystone.plan._sizes import find_sizes

BAR = 0.02


def estimate(config, words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        done = subprocess.run([find_command(), "estimate", path, "--json", *words],
                              capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["units"]


def formula_bytes(units):
    """Of the layers: for images those are all units."""
    layers = [unit for unit in units if "layer" in unit["name"]]
    return sum(unit["count"] * unit["saved_bytes"] for unit in layers or units)


def measured_bytes(layer, example, is_whole):
    """As a unit is counted: without its output, unless it is the last."""
    stage = dp.measure([layer], example, repeats=1)["stages"][0]
    is_output_out = stage["saved_has_output"] and not is_whole
    return stage["saved"] - is_output_out * stage["out"]


class Estimate(unittest.TestCase):
    def check(self, dtype, precision):
        for name, layer, config, words in architectures.new():
            with self.subTest(name):
                is_images = "height" in config
                shape = ((4, 64, 28, 28) if is_images else
                         (architectures.BATCH, architectures.LENGTH, architectures.WIDTH))
                example = torch.randn(shape, dtype=dtype, requires_grad=True)
                words = [*words, "--batch", str(shape[0]), "--precision", precision,
                         "--mask-bytes", str(example.element_size())]
                if not is_images:
                    words += ["--seq", str(architectures.LENGTH)]
                units = estimate(config, words)
                formula = formula_bytes(units)
                seen = measured_bytes(layer.to(dtype), example, is_images)
                print(f"{name:<24}{precision:<6}{formula:>10}{seen:>10}"
                      f"{100 * (formula / seen - 1):+7.2f} %")
                self.assertLess(abs(formula / seen - 1), BAR, units)

    def test_in_float32(self):
        self.check(torch.float32, "fp32")

    def test_in_bfloat16(self):
        self.check(torch.bfloat16, "bf16")

    def test_as_on_a_gpu(self):
        """Fake tensors take the ways of a GPU: masks of a byte, norms in one kernel.

        Forward alone: which kernel of attention would be taken, and the backward, cannot be
        asked for without a GPU.
        """
        shape = (architectures.BATCH, architectures.LENGTH, architectures.WIDTH)
        for name, layer, config, words in architectures.new_gpu():
            with self.subTest(name), FakeTensorMode(), torch.device("cuda"):
                torch.set_default_dtype(torch.bfloat16)
                self.addCleanup(torch.set_default_dtype, torch.float32)
                layer, example = layer(), torch.empty(shape, requires_grad=True)
                stage = find_sizes(Runner(layer), example)
                formula = formula_bytes(estimate(config, [
                    *words, "--precision", "bf16", "--batch", str(shape[0]),
                    "--seq", str(shape[1])]))
                seen = stage["saved"] - stage["saved_has_output"] * stage["out"]
                print(f"{name:<24}{'gpu':<6}{formula:>10}{seen:>10}"
                      f"{100 * (formula / seen - 1):+7.2f} %")
                self.assertLess(abs(formula / seen - 1), BAR)


if __name__ == "__main__":
    if not has_command("estimate"):
        print("SKIPPED: no drystone estimate (DRYSTONE)")
        sys.exit(torch_here.SKIPPED)
    print(f"torch {torch.__version__}: formula, measured, difference")
    unittest.main()
