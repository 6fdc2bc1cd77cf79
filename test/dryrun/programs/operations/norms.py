"""Normalisation over batches, groups, layers, instances; in training and in use."""
import torch
from torch import nn

x = torch.zeros(4, 16, 8, 8, device="cuda", requires_grad=True)
for layer in (nn.BatchNorm2d(16), nn.GroupNorm(4, 16), nn.InstanceNorm2d(16, affine=True),
              nn.LayerNorm([16, 8, 8]), nn.RMSNorm([8]), nn.LocalResponseNorm(2)):
    layer.cuda()
    for mode in (True, False):
        layer.train(mode)
        y = layer(x)
        assert y.shape == x.shape
        y.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
batch = nn.BatchNorm2d(16).cuda()
with torch.no_grad():
    batch(x)
assert batch.num_batches_tracked.is_cuda
folded = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)).cuda()
spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)).cuda()
spectral(folded(torch.zeros(2, 8, device="cuda"))).sum().backward()
assert nn.functional.normalize(x, dim=1).shape == x.shape
