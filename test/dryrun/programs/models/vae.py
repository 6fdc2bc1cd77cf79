"""A variational autoencoder: random numbers between two nets, and a divergence beside the loss."""
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
decoder = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 784)).cuda()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
prior = Normal(torch.zeros(32).cuda(), torch.ones(32).cuda())
for _ in range(5):
    x = torch.zeros(64, 784, device="cuda")
    mean, spread = encoder(x).chunk(2, 1)
    posterior = Normal(mean, (spread / 2).exp() + 1e-6)
    y = decoder(posterior.rsample())
    rebuilt = nn.functional.binary_cross_entropy_with_logits(y, x, reduction="sum")
    distance = kl_divergence(posterior, prior).sum()
    assert distance.shape == ()
    optimizer.zero_grad()
    (rebuilt + distance).backward()
    assert encoder[0].weight.grad is not None
    optimizer.step()
