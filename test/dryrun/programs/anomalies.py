"""Anomalies are looked for: its events have the lines of the forward pass, too."""
import torch

with torch.autograd.set_detect_anomaly(True):
    x = torch.randn(1 << 20, device="cuda", requires_grad=True)
    (x * x).exp().sum().backward()
