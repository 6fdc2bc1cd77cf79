"""Memory statistics are PyTorch's own, and nothing of them is reset."""
import torch

torch.cuda.reset_peak_memory_stats()
x = torch.empty(1 << 20, device="cuda")
assert torch.cuda.memory_allocated() == 4 << 20
assert torch.cuda.max_memory_allocated() == 4 << 20
del x
assert torch.cuda.memory_allocated() == 0
free, total = torch.cuda.mem_get_info()
assert total - free > 20 << 20
assert torch.cuda.get_device_name() == "NVIDIA H100 80GB HBM3"
assert torch.cuda.get_device_capability() == (9, 0)
