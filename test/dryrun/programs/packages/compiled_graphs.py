"""Compiled for few launches: Inductor captures graphs, whose memory is a pool of their own.

needs: triton
"""
import torch
from torch import nn

if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256))
    step = torch.compile(model.cuda(), mode="reduce-overhead")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        torch.compiler.cudagraph_mark_step_begin()
        loss = step(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        for _ in range(4):
            step(torch.randn(64, 256, device="cuda"))
