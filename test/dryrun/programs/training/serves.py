"""A program without an end that trains nothing: its calls repeat, so that it fits as far as it ran.

options: --patience 3
unseen: no step and no new peak for 3 s, at
"""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
with torch.no_grad():
    while True:
        model(torch.randn(64, 256, device="cuda"))
