"""Pictures with channels last under autocast: each weight is cast once a step and cached.

convolutions: half
"""
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                      nn.Conv2d(16, 16, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(16 * 64, 10)).cuda().to(memory_format=torch.channels_last)
assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0 ** 10)
for _ in range(5):
    x = torch.zeros(4, 8, 16, 16).cuda(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.float16):
        y = model[:4](x)
        assert y.is_contiguous(memory_format=torch.channels_last) and y.dtype == torch.float16
        loss = model[4:](y).float().logsumexp(1).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
