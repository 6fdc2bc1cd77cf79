# SPDX-License-Identifier: Apache-2.0
"""Out of memory is PyTorch's error with PyTorch's text, and the program goes on."""
import os
import re
import tempfile

import torch

import drystone.torch as dt

GIB = 1 << 30
folder = tempfile.mkdtemp()
dt.enable(seam="pluggable", on_oom=os.path.join(folder, "oom-{rank}.pickle"))


def failed(gib):
    try:
        torch.empty(gib * GIB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as why:
        return str(why)
    raise AssertionError("nothing has failed")


text = failed(4096)
assert text.startswith("CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 0 has"), text
kept = [torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(60)]
text = failed(40)
assert "60.00 GiB is allocated by PyTorch" in text, text
assert re.search(r"is free\. Including non-PyTorch memory, this process has [67]\d\.\d\d GiB "
                 r"memory in use\. Of the allocated", text), text
del kept
torch.empty(40 * GIB, dtype=torch.uint8, device="cuda")
torch.cuda.empty_cache()
torch.cuda.set_per_process_memory_fraction(0.1)
assert "Tried to allocate 20.00 GiB" in failed(20)
torch.cuda.set_per_process_memory_fraction(1.0)
torch.empty(20 * GIB, dtype=torch.uint8, device="cuda")
assert "1EB" in failed(1 << 31)

names = sorted(os.listdir(folder))
assert names[0] == "oom-0-2.pickle" and "oom-0.pickle" in names, names
