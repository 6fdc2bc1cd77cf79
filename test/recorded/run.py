#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a GPU replay to the address: run.py TOOL

h100/ has those of test/gpu/train.py on an H100 with PyTorch 2.11.0, without names and paths
(`drystone anonymize`). The peaks stand here as the program printed them.
"""
import json
import pathlib
import subprocess
import sys

PEAKS = {  # reserved, allocated, in bytes
    "h100/gpt2": (12301893632, 9524747264),
    "h100/lora": (14392754176, 12560137728),
    "h100/fsdp": (11658067968, 9836487168),
    "h100/resnet": (3571449856, 3296393728),
}
HERE = pathlib.Path(__file__).resolve().parent


def check(tool, name):
    path = HERE / f"{name}.pickle.gz"
    done = subprocess.run([tool, "replay", "--json", path], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    found = (said["recorded"]["reserved_peak_bytes"], said["recorded"]["allocated_peak_bytes"])
    assert said["self_check"]["exact"], f"{name}: {said['self_check']}"
    assert found == PEAKS[name], f"{name}: {found}, expected {PEAKS[name]}"


for recording in PEAKS:
    check(sys.argv[1], recording)
print(f"{len(PEAKS)} recordings are exact")
