"""FlexAttention without a compiler: a block mask and a changed score."""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def causal(batch, head, query, key):
    return query >= key


def slope(score, batch, head, query, key):
    return score + (key - query) * 0.1


q, k, v = (torch.zeros(1, 2, 256, 32, device="cuda", requires_grad=True) for _ in range(3))
mask = create_block_mask(causal, None, None, 256, 256, device="cuda")
assert mask.shape == (1, 1, 256, 256)
torch.cuda.reset_peak_memory_stats()
y = flex_attention(q, k, v, score_mod=slope, block_mask=mask)
assert y.shape == q.shape
y.sum().backward()
assert k.grad.shape == k.shape
assert torch.cuda.max_memory_allocated() >= 2 * 256 * 256 * 4  # the scores are held
