"""Two nets that step in turn, without an end: a period of two steps repeats."""
import torch

nets = [torch.nn.Linear(512, width).cuda() for width in (512, 2048)]
optimizers = [torch.optim.Adam(net.parameters()) for net in nets]
while True:
    for net, optimizer in zip(nets, optimizers):
        optimizer.zero_grad()
        net(torch.randn(64, 512, device="cuda")).relu().square().sum().backward()
        optimizer.step()
