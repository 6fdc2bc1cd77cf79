"""torch.compile as it comes: Inductor writes kernels, Triton and ptxas compile them.

needs: triton
"""
import torch
from torch import nn

if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256))
    step = torch.compile(model.cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step(torch.randn(64, 256, device="cuda")).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
