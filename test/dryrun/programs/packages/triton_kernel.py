"""Kernels that the program wrote in Triton are tuned: one of those that the card can run is timed.

needs: triton
"""
import torch
import triton
import triton.language as tl

ran = set()
SIZES = 256, 512


@triton.autotune([triton.Config({"BLOCK": size}, pre_hook=lambda named: ran.add(named["BLOCK"]))
                  for size in SIZES], key=["count"])
@triton.jit
def double(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y

    @staticmethod
    def backward(ctx, grad):
        return Double.apply(grad.contiguous())


weight = torch.nn.Parameter(torch.randn(64, 1024, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(5):
    Double.apply(weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
assert torch.cuda.max_memory_allocated() > 256 << 20  # what the tuner clears the cache with
assert ran == {256}, ran
