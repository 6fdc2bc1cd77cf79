"""The optimiser's step compiled, too: its foreach kernels become Triton's.

needs: triton
"""
import torch
from torch import nn

if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)

    @torch.compile(fullgraph=False)
    def update():
        optimizer.step()

    for _ in range(5):
        model(torch.randn(64, 256, device="cuda")).square().mean().backward()
        update()
        optimizer.zero_grad()
