"""Pictures made larger, smaller, turned and folded, forward and back."""
import torch
from torch.nn import functional as F

x = torch.zeros(2, 3, 32, 32, device="cuda", requires_grad=True)
for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact"):
    y = F.interpolate(x, scale_factor=2, mode=mode)
    assert y.shape == (2, 3, 64, 64)
    y.sum().backward()
assert F.interpolate(x, size=(16, 16), mode="bilinear", antialias=True).shape[2:] == (16, 16)
grid = F.affine_grid(torch.eye(2, 3).expand(2, 2, 3).cuda(), x.shape)
for mode in ("bilinear", "nearest", "bicubic"):
    y = F.grid_sample(x, grid, mode=mode, padding_mode="border", align_corners=False)
    assert y.shape == x.shape
    y.sum().backward()
parts = F.unfold(x, 4, stride=4)
assert parts.shape == (2, 48, 64)
assert F.fold(parts, (32, 32), 4, stride=4).shape == x.shape
assert F.pixel_shuffle(torch.zeros(2, 12, 8, 8, device="cuda"), 2).shape == (2, 3, 16, 16)
for pool in (F.max_pool2d, F.avg_pool2d):
    pool(x, 2).sum().backward()
F.adaptive_avg_pool2d(x, 1).sum().backward()
F.pad(x, (1, 2, 3, 4), mode="reflect").sum().backward()
assert x.grad.shape == x.shape
