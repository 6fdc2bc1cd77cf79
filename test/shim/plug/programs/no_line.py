# SPDX-License-Identifier: Apache-2.0
"""`drystone run --allocator` enables the allocator, without a line in the program.

run: --allocator torch --allocator-conf max_split_size_mb:64 --on-oom {folder}/line.pickle
expect: out of memory, snapshot in
"""
import torch

assert torch.cuda.memory.get_allocator_backend() == "pluggable"
try:
    torch.empty(1 << 40, device="cuda")
    raise AssertionError("nothing has failed")
except torch.OutOfMemoryError:
    pass
