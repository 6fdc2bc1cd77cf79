"""The profiler of PyTorch counts memory of the device, too."""
import torch
from torch.profiler import ProfilerActivity, profile, record_function

model = torch.nn.Linear(1024, 1024).cuda()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True,
             record_shapes=True) as trace:
    with record_function("one step"):
        y = model(torch.zeros(256, 1024, device="cuda"))
        y.sum().backward()
rows = {row.key: row for row in trace.key_averages()}
assert "one step" in rows and "aten::addmm" in rows
used = getattr(rows["aten::addmm"], "device_memory_usage")
assert used >= 256 * 1024 * 4, used
