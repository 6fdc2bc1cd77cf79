"""A torch that has no kernels for the card says so, and its memory is told all the same.

card: v100-32
options: --memory 31GiB
kernels: lacking
"""
import torch

assert torch.cuda.get_device_properties(0).total_memory == 31 << 30
torch.zeros(1000, device="cuda")
