# SPDX-License-Identifier: Apache-2.0
"""enable() refuses an option that is none at the call, and does nothing the second time; enabled()
is None once PyTorch has another allocator."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

import torch

import drystone.torch as dt
from drystone.torch import _plug


def refused(text, *words, **options):
    try:
        dt.enable(*words, **options)
    except dt.ShimError as why:
        assert text in str(why) and len(str(why).splitlines()) == 1, why
        return
    raise AssertionError(f"not refused: {text}")


PLACEMENT = support.PLACEMENT
CONF = {"torch": "max_split_size_mb:64", "paged": "budget:1.2"}[PLACEMENT]
refused("'nonsense", PLACEMENT, conf="nonsense:1")
refused(f"{CONF.split(':')[0]}", PLACEMENT, conf=CONF.split(":")[0] + ":0")
assert dt.enabled() is None and dt.enabled_seam() is None
for seam in ("auto", "auto", "native"):
    dt.enable(PLACEMENT, conf=CONF, seam=seam)
    assert dt.enabled() == PLACEMENT and dt.enabled_seam() == "native"
refused(f"enabled already: conf is {CONF!r}, and '' is asked for; on_oom is None, and 'oom.pickle' "
        "is asked for", PLACEMENT, conf="", on_oom="oom.pickle")
refused("seam is 'native', and 'pluggable' is asked for", PLACEMENT, conf=CONF, seam="pluggable")
OTHER = "torch" if PLACEMENT == "paged" else "paged"
refused(f"placement is {PLACEMENT!r}, and {OTHER!r} is asked for", OTHER, conf=CONF)
refused('placement is "paged" or "torch", not "other"', "other", conf=CONF)

torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(
    _plug.find_plug(), "drystone_plug_alloc", "drystone_plug_free"))
assert dt.enabled() is None and dt.enabled_seam() is None
refused('the allocator "pluggable"', PLACEMENT, conf=CONF)
torch.empty(1, device="cuda")
support.passed()
