# SPDX-License-Identifier: Apache-2.0
"""Tensors in pinned memory of ours: every way to one, copies, views, figures, a clear."""
from pinned_here import MIB, check, enable_pinned, pinned, pinned_clear, pinned_stats, torch

enable_pinned(block_count=0)
assert pinned_stats()["allocated_bytes.current"] == 0
before = torch.arange(1000.0)
tensor = before.pin_memory()
assert tensor.is_pinned() and torch.equal(tensor, before)
assert pinned(10).is_pinned() and torch.zeros(3, 3, pin_memory=True).is_pinned()
assert torch.empty_like(before, pin_memory=True).is_pinned()
assert pinned(0).numel() == 0 and pinned(0).data_ptr() == 0
assert tensor.data_ptr() % 512 == 0 and pinned(8 * MIB).data_ptr() % 4096 == 0

# There and back, whole and in views; memory of others is nobody's business.
device = tensor.to("cuda", non_blocking=True)
back = pinned(1000, torch.float32)
back.copy_(device, non_blocking=True)
torch.cuda.synchronize()
assert torch.equal(back, before)
part = tensor[100:200].to("cuda", non_blocking=True)
assert torch.equal(part.cpu(), before[100:200])
back[:5].copy_(torch.ones(5, device="cuda"), non_blocking=True)
assert torch.equal(before.to("cuda", non_blocking=True).cpu(), before)
loose = torch.from_numpy(before.numpy().copy()).to("cuda", non_blocking=True)
assert torch.equal(loose.cpu(), before)

# The figures are PyTorch's, and add up.
stats, ours = torch.cuda.host_memory_stats(), pinned_stats()
names = {"allocated_bytes": "reserved_bytes", "active_bytes": "allocated_bytes"} \
    if "reserved_bytes.current" in stats else {}
for name in ("allocated_bytes", "active_bytes"):
    for kind in ("current", "peak", "allocated", "freed"):
        assert stats[f"{names.get(name, name)}.{kind}"] == ours[f"{name}.{kind}"], (name, kind)
assert stats["num_host_alloc"] == ours["num_host_alloc"] > 0
assert ours["requested_bytes.current"] <= ours["active_bytes.current"]
assert stats["host_alloc_time.count"] == ours["host_alloc_time.count"]

# An arena with a block stays, all others go.
large = pinned(64 * MIB)
del tensor, back, device, part
torch.cuda.synchronize()
pinned_clear()
kept = pinned_stats()
assert kept["idle_bytes"] == 0 and kept["allocated_bytes.current"] >= 64 * MIB
del large
torch._C._host_emptyCache()
assert pinned_stats()["allocated_bytes.current"] == 0 == pinned_stats()["active_bytes.current"]

# So do the functions that empty the GPU's cache.
for empty in (torch.cuda.empty_cache, getattr(torch.accelerator, "empty_cache", None)):
    kept, large = pinned(MIB), pinned(64 * MIB)
    del large
    assert pinned_stats()["allocated_bytes.current"] >= 64 * MIB
    (empty or pinned_clear)()
    assert pinned_stats()["idle_bytes"] == 0
    assert MIB <= pinned_stats()["allocated_bytes.current"] < 64 * MIB
    del kept
torch.cuda.empty_cache()
assert pinned_stats()["allocated_bytes.current"] == 0
torch.cuda.reset_peak_host_memory_stats()
torch.cuda.reset_accumulated_host_memory_stats()
assert pinned_stats()["active_bytes.peak"] == pinned_stats()["active_bytes.allocated"] == 0
check()
