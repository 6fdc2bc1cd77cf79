# SPDX-License-Identifier: Apache-2.0
"""torch.compile's trees of graphs: a private pool goes back to its checkpoint and on again."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch
from torch._inductor.cudagraph_trees import cudagraphify_impl


def work(values):
    x = values[0]
    values.clear()
    return [x * 2 + 1, (x + 3).relu()]


def other(values):
    x = values[0]
    values.clear()
    return [x - 1]


first = second = kept = None
for turn in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    x = torch.empty(1 << 16, device="cuda")
    if first is None:
        how = {"device_index": 0, "is_backward": False, "is_inference": True,
               "stack_traces": [None]}
        first = cudagraphify_impl(work, [x], (), **{**how, "stack_traces": [None, None]})
        second = cudagraphify_impl(other, [x], (), **how)
    out = first([x])
    if turn % 2:  # another path of the tree, from what the first one left
        del out[0]
    kept = second([out[0].detach()]) if turn > 1 else None
    del out, x
torch.cuda.synchronize()
reserved = torch.cuda.memory_reserved()
assert reserved > 0
del kept
support.passed()
