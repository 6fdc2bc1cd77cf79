"""The allocator of CUDA itself, ordered by streams.

conf: backend:cudaMallocAsync
expect: none
"""
import torch

assert torch.cuda.memory.get_allocator_backend() == "cudaMallocAsync"
x = torch.empty(4 << 20, device="cuda")
assert torch.cuda.memory_allocated() == 16 << 20
del x
assert torch.cuda.memory_allocated() == 0
assert torch.cuda.max_memory_allocated() == 16 << 20
model = torch.nn.Linear(512, 512).cuda()
model(torch.zeros(8, 512, device="cuda")).sum().backward()
torch.cuda.empty_cache()
