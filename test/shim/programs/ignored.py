# SPDX-License-Identifier: Apache-2.0
"""Placement paged says once which of PyTorch's settings have no effect, and no word of others."""
import os
import pathlib
import re
import sys
import warnings

os.environ.pop("PYTORCH_ALLOC_CONF", None)
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = (
    "expandable_segments:True,roundup_power2_divisions:[256:1,>:8] , pinned_num_register_threads:2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

import torch

import drystone.torch as dt
from drystone.torch import _conf


def said(call, *words, **options):
    """The warnings of a call, each as what it is about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*words, **options)
    texts = [str(one.message) for one in caught if "drystone" in str(one.message)]
    assert all(one.filename == __file__ for one in caught if "drystone" in str(one.message))
    assert all(" has no effect with placement paged" in text for text in texts), texts
    return [text.split(" has ")[0] for text in texts]


page = pathlib.Path(__file__).resolve().parents[3] / "doc/drystone-pool.5.scd"
section = page.read_text().split("\n# OPTIONS OF ")[1]
assert sorted(re.findall(r"\*(\w+):\*_", section)) == sorted(_conf.OPTIONS)

PLACEMENT = support.PLACEMENT
CONF = {"paged": " budget:1.2,max_split_size_mb:64,plan:False", "torch": "max_split_size_mb:64"}
ours = said(dt.pool, PLACEMENT, conf=CONF[PLACEMENT])
assert ours == ["drystone: max_split_size_mb:64 of conf"] * (PLACEMENT == "paged"), ours
ours = said(dt.enable, PLACEMENT, conf=CONF[PLACEMENT])
variable = "of $PYTORCH_CUDA_ALLOC_CONF"
assert ours == (PLACEMENT == "paged") * [
    "drystone: max_split_size_mb:64 of conf", f"drystone: expandable_segments:True {variable}",
    f"drystone: roundup_power2_divisions:[256:1,>:8] {variable}"], ours
assert said(dt.enable, PLACEMENT, conf=CONF[PLACEMENT]) == []
torch.empty(1, device="cuda")
support.passed()
