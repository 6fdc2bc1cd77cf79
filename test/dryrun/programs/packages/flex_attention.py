"""FlexAttention, compiled: a block mask and a score function become kernels.

needs: triton
"""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

if __name__ == "__main__":
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    attend = torch.compile(flex_attention)
    for _ in range(4):
        q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16,
                               requires_grad=True) for _ in range(3))
        out = attend(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j),
                     block_mask=mask)
        out.sum().backward()
