"""A function with a backward pass of its own, which saves less than PyTorch's would."""
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * s * (1 + x * (1 - s))


def held_by(function):
    x = torch.zeros(1 << 20, device="cuda", requires_grad=True)
    y = x * 1
    before = torch.cuda.memory_allocated()
    z = function(y)
    held = torch.cuda.memory_allocated() - before
    z.sum().backward()
    assert x.grad.shape == x.shape
    return held


own, plain = held_by(Square.apply), held_by(lambda x: x * torch.sigmoid(x))
assert own == 4 << 20 and plain == 8 << 20, (own, plain)
library = torch.library.Library("battery", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CUDA")
assert torch.ops.battery.twice(torch.zeros(3, device="cuda")).shape == (3,)
