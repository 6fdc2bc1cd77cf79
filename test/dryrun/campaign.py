#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The campaign for a GPU runs over the stand-in: campaign.py TOOL MEASURE STRICT

Each part of test/gpu/campaign.py ends well, and leaves its file. Figures mean nothing here: kernels
do nothing. MEASURE is the program of test/gpu/measure.c, STRICT the stand-in that it runs on,
whose memory keeps its bytes. The part that runs out of memory goes beside the others, for a dry
run repeats such a program on a card without an end.

PyTorch with CUDA is $DRY_TEST_TORCH (scripts/get_torch.py makes it); without it all is skipped.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from needs import find_torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABOUT = ("device", "driver", "torch", "status", "seconds", "command")
OTHERS = ("driver", "context", "nodes", "graphs", "workspaces", "nccl", "train")
FILES = {"driver", "context", "nodes", "graphs-native", "graphs-paged", "workspaces", "nccl",
         "train-lengths-native-1", "train-lengths-paged-budget-1.25-1"}


def start(tool, torch, folder, *words):
    """What the campaign prints; `folder` is its own."""
    folder.mkdir()
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1", DRYSTONE=str(tool),
               DRYSTONE_LIBRARY=str(tool.parents[1] / "src/libdrystone.so"),
               XDG_CACHE_HOME=str(tool.parents[1] / "shims"))
    dry = [tool, "dry-run", "--card", "h100-80", "--steps", "1000", "--events", "1000", "--output",
           folder / "run.pickle", "--"]
    words = [*dry, sys.executable, ROOT / "test/gpu/campaign.py", "--quick", "--minutes", "120",
             "--out", folder / "out", *words]
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=7200, check=False)
    return done.stdout + done.stderr


def check_files(folder, text):
    files = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert set(files) == FILES, f"files {sorted(files)}\n{text}"
    for name, file in files.items():
        assert all(file.get(key) for key in ABOUT), f"{name}: {file}"
        assert file["status"] == "ok" and file["results"], f"{name}: {file}"
    costs = files["driver"]["results"][-1]
    assert [row["handle_bytes"] >> 20 for row in costs["handles"]] == [2, 20, 512], costs
    for name in ("train-lengths-native-1", "train-lengths-paged-budget-1.25-1"):
        result = files[name]["results"][-1]
        assert result["reserved"] >= result["allocated"] > 0, result
        assert "num_device_alloc" in result["a_step"], result


def check_text(text):
    own = text.partition("\nNVIDIA H100")[2].partition(" files in ")[0]
    assert "training " in own and "lengths  paged budget:1.25" in own, text
    assert max(len(line) for line in own.splitlines()) <= 80, own


def main():
    tool, measure, strict = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    torch = find_torch()
    only = [word for part in OTHERS for word in ("--only", part)]
    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor() as threads:
        folder = pathlib.Path(temporary)
        aftermath = threads.submit(start, tool, torch, folder / "aftermath", "--only", "aftermath")
        text = start(tool, torch, folder / "others", "--measure", measure, "--library", strict,
                     *only)
        check_files(folder / "others/out", text)
        check_text(text)
        for allocator in ("native", "paged"):
            assert f"ok        aftermath-{allocator} " in aftermath.result(), aftermath.result()
    print(f"{len(FILES) + 2} runs end well")


main()
