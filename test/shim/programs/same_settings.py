# SPDX-License-Identifier: Apache-2.0
"""Settings made while a program runs: figures of PyTorch; paged says that they do nothing."""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch

MIB = 1 << 20


def set_conf(conf):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.memory._set_allocator_settings(conf)
    ours = [str(one.message) for one in said if "drystone" in str(one.message)]
    assert bool(ours) == (support.PLACEMENT == "paged"), said
    assert not ours or conf in ours[0], ours


def some(device):
    return [torch.empty(size * MIB // 2, dtype=torch.uint8, device=device)
            for size in (1, 3, 9, 45, 130)]


torch.cuda.memory._record_memory_history(stacks="python")
kept = some("cuda:0")
set_conf("expandable_segments:True")
kept += some("cuda:0")
set_conf("expandable_segments:False,roundup_power2_divisions:4")
kept += some("cuda:0") + some("cuda:1")  # a device that is used only now
del kept[::2]
set_conf("max_split_size_mb:64")
kept += some("cuda:0") + some("cuda:1")
del kept
torch.cuda.empty_cache()
last = some("cuda:0")
support.dump(torch)
try:
    torch.cuda.memory._set_allocator_settings("no_such_setting:1")
    raise AssertionError("a setting that is none was taken")
except (RuntimeError, ValueError):
    pass
support.passed()
