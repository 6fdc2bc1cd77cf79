"""Copies between cards keep what the host wrote; each card has its own account.

gpus: 2
"""
import torch

assert torch.cuda.device_count() == 2
assert torch.cuda.can_device_access_peer(0, 1)
there = torch.arange(100.0, device="cpu").to("cuda:0")
other = there.to("cuda:1", non_blocking=True)
assert other.device.index == 1 and torch.equal(other.cpu(), torch.arange(100.0))
target = torch.empty(100, device="cuda:1")
target.copy_(there)
assert torch.equal(target.cpu(), torch.arange(100.0))
before = torch.cuda.memory_allocated(0)
with torch.cuda.device(1):
    x = torch.empty(1 << 20, device="cuda")
    assert x.device.index == 1 and torch.cuda.current_device() == 1
assert torch.cuda.current_device() == 0
assert torch.cuda.memory_allocated(0) == before
assert torch.cuda.memory_allocated(1) >= 4 << 20
try:
    there + other
    raise AssertionError("two devices in one operation")
except RuntimeError:
    pass
try:
    torch.empty(1, device="cuda:2")
    raise AssertionError("there is no third card")
except RuntimeError as error:
    assert "invalid device ordinal" in str(error) or "device" in str(error), error
