#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published configurations: parameters, and the bytes of quantized weights: published.py TOOL

models.json has configurations with the numbers of parameters that Transformers 4.57 counts; the
file python/test_published.py counts them again. quantized.json has configurations with the bytes
of all tensors of their weights, each with where the number comes from.
"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def estimate(tool, config):
    run = subprocess.run([tool, "estimate", "-", "--inference", "--seq", "16", "--json"],
                         input=json.dumps(config), capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def check_parameters(tool):
    models = json.loads((HERE / "models.json").read_text())
    wrong = []
    for model in models:
        found = estimate(tool, model["config"])
        if found["parameters"] != model["parameters"] or found["unknown_family"]:
            wrong.append((model["name"], found["parameters"], model["parameters"]))
    families = {model["config"]["model_type"] for model in models}
    print(f"{len(models) - len(wrong)} of {len(models)} of {len(families)} families exact")
    assert not wrong, wrong
    assert len(models) >= 30 and len(families) >= 15


def check_bytes(tool):
    for model in json.loads((HERE / "quantized.json").read_text()):
        found = estimate(tool, model["config"])
        weights = sum(row["bytes"] for row in found["rows"] if row["group"] == "weights")
        assert weights == model["bytes"], (model["name"], weights, model["bytes"])
        print(f"{model['name']}: {weights} bytes")


def main():
    check_parameters(sys.argv[1])
    check_bytes(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
