"""A model on two cards of one process.

gpus: 2
"""
import torch

first = torch.nn.Linear(1024, 1024).to("cuda:0")
second = torch.nn.Linear(1024, 1024).to("cuda:1")
for _ in range(4):
    y = second(first(torch.randn(64, 1024, device="cuda:0")).to("cuda:1"))
    y.sum().backward()
assert torch.cuda.memory_allocated(1) > 0
