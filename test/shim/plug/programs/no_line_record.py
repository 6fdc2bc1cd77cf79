# SPDX-License-Identifier: Apache-2.0
"""`drystone run --on-oom` alone leaves PyTorch its own allocator, and watches it.

run: --on-oom {folder}/record.pickle
expect: out of memory, snapshot in
"""
import torch

assert torch.cuda.memory.get_allocator_backend() == "native"
try:
    torch.empty(1 << 40, device="cuda")
    raise AssertionError("nothing has failed")
except torch.OutOfMemoryError:
    pass
