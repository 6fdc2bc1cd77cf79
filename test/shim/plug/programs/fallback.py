# SPDX-License-Identifier: Apache-2.0
"""Without a compiler the seam in C serves, and standard error says what is lacking.

expect: lacks memory_stats
"""
import torch

import drystone.torch as dt

dt.enable()
assert (dt.enabled(), dt.enabled_seam()) == ("paged", "pluggable")
kept = torch.ones(1 << 20, device="cuda")
assert torch.cuda.get_allocator_backend() == "pluggable"
try:
    torch.cuda.memory_stats()
    raise AssertionError("PyTorch's class has statistics now: say so no more")
except RuntimeError:
    pass
dt.enable()  # a notebook's cell, run again
dt.enable(seam="pluggable")
for call, text in ((dt.pool, "torch.cuda.MemPool()"),
                   (lambda: dt.enable(seam="native"), "seam is 'pluggable', and 'native' is asked"),
                   (lambda: dt.enable(conf="budget:1.2"), "conf is '', and 'budget:1.2' is asked")):
    try:
        call()
        raise AssertionError("nothing is refused")
    except dt.ShimError as why:
        assert text in str(why), why
