"""Attention by each of PyTorch's ways: all but the plain one never hold the scores."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attend

LENGTH, HEADS = 1024, 4


def peak_of(backend, **more):
    q, k, v = (torch.zeros(2, HEADS, LENGTH, 64, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with sdpa_kernel(backend):
        y = attend(q, k, v, **more)
    assert y.shape == q.shape and y.dtype == q.dtype
    y.sum().backward()
    assert q.grad.shape == q.shape
    return torch.cuda.max_memory_allocated() - before


scores = 2 * HEADS * LENGTH * LENGTH * 2
plain = peak_of(SDPBackend.MATH, is_causal=True)
assert plain > scores
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
                SDPBackend.CUDNN_ATTENTION):
    assert peak_of(backend, is_causal=True) < plain / 2, backend
mask = torch.zeros(LENGTH, LENGTH, device="cuda", dtype=torch.bfloat16)
peak_of(SDPBackend.EFFICIENT_ATTENTION, attn_mask=mask, dropout_p=0.1)
try:
    peak_of(SDPBackend.FLASH_ATTENTION, attn_mask=mask)
    raise AssertionError("flash attention took a mask")
except RuntimeError as error:
    assert "kernel" in str(error), error
