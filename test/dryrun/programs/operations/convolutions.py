"""Convolutions of one to three dimensions, transposed, grouped, dilated; in three precisions."""
import torch
from torch import nn

CASES = (
    (nn.Conv1d(8, 16, 3, padding=1), (2, 8, 40), (2, 16, 40)),
    (nn.Conv2d(8, 16, 3, stride=2, padding=1), (2, 8, 16, 16), (2, 16, 8, 8)),
    (nn.Conv2d(8, 8, 3, groups=8, padding="same"), (2, 8, 16, 16), (2, 8, 16, 16)),
    (nn.Conv2d(8, 16, 3, dilation=2, padding_mode="circular", padding=2), (2, 8, 16, 16),
     (2, 16, 16, 16)),
    (nn.Conv3d(4, 8, 3, padding=1), (1, 4, 8, 8, 8), (1, 8, 8, 8, 8)),
    (nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1), (2, 8, 20), (2, 4, 40)),
    (nn.ConvTranspose2d(8, 4, 2, stride=2), (2, 8, 8, 8), (2, 4, 16, 16)),
    (nn.ConvTranspose3d(4, 2, 2, stride=2), (1, 4, 4, 4, 4), (1, 2, 8, 8, 8)),
)
for kind in (torch.float32, torch.float16, torch.bfloat16):
    for layer, given, made in CASES:
        layer = layer.to("cuda", kind)
        x = torch.zeros(given, device="cuda", dtype=kind, requires_grad=True)
        y = layer(x)
        assert y.shape == made and y.dtype == kind, layer
        layer.zero_grad()
        y.sum().backward()
        assert x.grad.shape == given and layer.weight.grad.shape == layer.weight.shape
torch.backends.cudnn.benchmark = True
y = nn.Conv2d(8, 8, 3).cuda()(torch.zeros(1, 8, 16, 16, device="cuda"))
assert y.shape == (1, 8, 14, 14)
with torch.backends.cudnn.flags(enabled=False):
    y = nn.Conv2d(8, 8, 3).cuda()(torch.zeros(1, 8, 16, 16, device="cuda", requires_grad=True))
    y.sum().backward()
