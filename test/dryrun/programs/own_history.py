"""A program that records a history of its own and ends it: the dry run's goes on."""
import torch

torch.cuda.memory._record_memory_history(max_entries=1000)
model = torch.nn.Linear(4096, 4096).cuda()
for _ in range(3):
    model(torch.randn(64, 4096, device="cuda")).sum().backward()
snapshot = torch.cuda.memory._snapshot()
assert any(snapshot["device_traces"])
torch.cuda.memory._record_memory_history(enabled=None)
model(torch.randn(6400, 4096, device="cuda")).sum().backward()
