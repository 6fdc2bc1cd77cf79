"""Memory of the host: pinned, registered, copied without waiting."""
import torch

pinned = torch.arange(1024.0).pin_memory()
assert pinned.is_pinned() and not torch.arange(4).is_pinned()
device = pinned.to("cuda", non_blocking=True)
back = torch.empty(1024, pin_memory=True)
back.copy_(device, non_blocking=True)
torch.cuda.synchronize()
assert torch.equal(back, pinned)
plain = torch.zeros(1 << 20)
runtime = torch.cuda.cudart()
assert int(runtime.cudaHostRegister(plain.data_ptr(), plain.numel() * 4, 0)) == 0
assert plain.is_pinned()
assert int(runtime.cudaHostRegister(plain.data_ptr(), plain.numel() * 4, 0)) == 712
assert int(runtime.cudaHostUnregister(plain.data_ptr())) == 0
assert not plain.is_pinned()
assert int(runtime.cudaHostUnregister(plain.data_ptr())) == 713
if hasattr(torch.cuda, "host_memory_stats"):
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] > 0
