"""max-autotune compares kernels: a library's own is timed, none of Triton's is compiled for it.

needs: triton
"""
import torch
from torch import nn
from torch._inductor.select_algorithm import AlgorithmSelectorCache as Cache

if __name__ == "__main__":
    timed, time = [], Cache.benchmark_choice
    Cache.benchmark_choice = classmethod(lambda cls, choice, *more:
                                         timed.append(choice.name) or time(choice, *more))
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda().bfloat16()
    step = torch.compile(model, mode="max-autotune-no-cudagraphs")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        x = torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16)
        step(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert timed and not any(name.startswith("triton") for name in timed), timed
