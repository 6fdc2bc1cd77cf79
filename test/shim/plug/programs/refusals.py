# SPDX-License-Identifier: Apache-2.0
"""Whatever cannot be is refused in a clear line, and leaves PyTorch's own allocator."""
import os

import torch

import drystone.torch as dt
from drystone._errors import Error


def refused(text, call, *words, **options):
    try:
        call(*words, **options)
    except Error as why:
        assert text in str(why) and len(str(why).splitlines()) == 1, why
        assert dt.enabled() is None and dt.enabled_seam() is None
        return
    raise AssertionError(f"not refused: {text}")


refused("seam is", dt.enable, seam="c++")
IS_KNOWN = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
refused("no C++ compiler" if IS_KNOWN else "2.8 is the oldest", dt.enable, seam="native")
refused('placement is "paged" or "torch"', dt.enable, "page", seam="pluggable")
refused("conf: option 'budgt:2'", dt.enable, conf="budgt:2", seam="pluggable")
refused("conf: Unrecognized key in the allocator config, got 'max_split'", dt.enable, "torch", conf="max_split:1", seam="pluggable")
refused("{rank} and {pid}", dt.enable, on_oom="{host}.pickle", seam="pluggable")
if IS_KNOWN:
    refused("conf: option 'budgt:2'", dt.pool, conf="budgt:2")
    refused('placement is "paged" or "torch"', dt.pool, "native")
else:
    refused("2.8 is the oldest release for a part", dt.pool)

os.environ["DRYSTONE_SHIM"] = "/nowhere/libshim.so"  # asked for by name: nothing else will do
refused("/nowhere/libshim.so" if IS_KNOWN else "2.8 is the oldest", dt.enable)
del os.environ["DRYSTONE_SHIM"]

library = os.environ["DRYSTONE_LIBRARY"]
os.environ["DRYSTONE_LIBRARY"] = "/nowhere/libdrystone.so"
refused("/nowhere/libdrystone.so", dt.enable, seam="pluggable")
os.environ["DRYSTONE_LIBRARY"] = library

kept = torch.ones(1, device="cuda")
refused("CUDA's memory was used already", dt.enable, seam="pluggable")
refused("CUDA's memory was used already", dt.enable)
