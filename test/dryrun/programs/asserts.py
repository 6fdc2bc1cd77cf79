"""What a program asserts of unknown numbers holds, as it does on a GPU; known ones are looked at.

guesses: 15 item
"""
import torch

boxes = torch.rand(100, 4, device="cuda")
assert (boxes[:, 2:] >= boxes[:, :2]).all()
assert (boxes > 0).any(), "no boxes"
assert not (boxes < 0).any()
try:
    assert (torch.tensor([3, 0, 2]).cuda() > 0).all()
    print("known numbers were not looked at")
except AssertionError:
    if (boxes > 0).all():
        print("a branch is a guess")
    torch.empty(8, device="cuda")
