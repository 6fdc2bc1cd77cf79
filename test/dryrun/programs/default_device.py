"""A program for which new tensors are on the device: its numbers stay what they are.

guesses: 14 copy
"""
import torch

for choose in (lambda: torch.set_default_device("cuda"),
               lambda: torch.set_default_tensor_type("torch.cuda.FloatTensor")):
    choose()
    order = torch.arange(10)
    assert order.is_cuda and order[order > 6].tolist() == [7, 8, 9]
    moved = torch.tensor([3, 0, 2], device="cpu").cuda()
    assert moved.nonzero().numel() == 2 and torch.where(moved > 0, moved, 7).max().item() == 7
    assert sorted(torch.randperm(9).cpu().tolist()) == list(range(9))
    assert not (torch.rand(9) == float("inf")).any()
    torch.set_default_device(None)
