"""The peak lies in a backward pass of masks and products, which no Python calls.

peak: backward, backward of peak_in_backward.py:11 weigh
"""
import torch


def weigh(x):
    y = x.exp()
    # the product keeps both factors; their gradients come on top
    z = torch.where(y > 1, y, x)
    return (
        z * y).sum()


x = torch.randn(1 << 22, device="cuda", requires_grad=True)
for _ in range(3):
    weigh(x).backward()
    x.grad = None
