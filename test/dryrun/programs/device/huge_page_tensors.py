"""Tensors of drystone.empty(): PyTorch knows which are page-locked, and copies from them."""
import gc
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "python"))
import drystone

device = torch.zeros(10, device="cuda")
ours = drystone.zeros((64, 1024), "float32", pinned=True)
host = torch.from_dlpack(ours)
assert host.is_pinned() and host.data_ptr() == ours.data_ptr
assert not torch.from_dlpack(drystone.zeros(5)).is_pinned()
host += 3
there = host.to("cuda", non_blocking=True)
ours.record_stream(torch.cuda.current_stream().cuda_stream)
del ours, host
gc.collect()
again = drystone.zeros((64, 1024), "float32", pinned=True)
torch.cuda.synchronize()
assert float(there.cpu().sum()) == 3 * 64 * 1024
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.from_dlpack(again)), batch_size=16, pin_memory=True)
assert all(batch.is_pinned() for batch, in loader)
