"""Coordinate descent compares many configurations of a kernel: one is timed, for its memory.

needs: triton
"""
import torch
from torch._dynamo.utils import counters
from torch._inductor import config

if __name__ == "__main__":
    config.coordinate_descent_tuning = True
    step = torch.compile(lambda x: (x.sin() * x.cos()).softmax(1))
    step(torch.zeros(4096, 4096, device="cuda"))
    count = counters["inductor"]["coordesc_tuning_bench"]
    assert 0 < count < 4, f"{count} configurations were timed"
