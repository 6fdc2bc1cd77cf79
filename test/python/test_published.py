#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parameters of test/golden/published/models.json, counted by Transformers' own classes.

Models are built without memory, on the device "meta". Skipped where there is no Transformers.
"""
import json
import pathlib
import sys
import unittest

import torch_here
import torch

try:
    import transformers
except ImportError as why:
    print(f"SKIPPED: no transformers: {why}")
    sys.exit(torch_here.SKIPPED)

MODELS = (pathlib.Path(__file__).resolve().parents[1] / "golden" / "published" /
          "models.json")


def count(config):
    values = {key: value for key, value in config.items()
              if key not in ("model_type", "architectures")}
    made = transformers.AutoConfig.for_model(config["model_type"], **values)
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])(made)
    model.tie_weights()
    biases = [buffer for name, buffer in model.named_buffers()
              if name.endswith("e_score_correction_bias")]
    return sum(p.numel() for p in [*model.parameters(), *biases])


class Published(unittest.TestCase):
    def test_parameters_are_those_of_transformers(self):
        for model in json.loads(MODELS.read_text()):
            with self.subTest(model["name"]):
                self.assertEqual(count(model["config"]), model["parameters"])


if __name__ == "__main__":
    unittest.main()
