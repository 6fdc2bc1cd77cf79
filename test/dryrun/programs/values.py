"""Small operations are done: sizes that depend on numbers are right.

options: --values
"""
import torch

x = torch.arange(100, device="cuda")
assert (x % 3 == 0).sum().item() == 34
assert torch.nonzero(x % 3 == 0).shape[0] == 34
assert x[x > 50].shape[0] == 49
assert torch.unique(x // 10).numel() == 10
x[x < 10] += 100
assert x.max().item() == 109
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
before = model.weight.detach().cpu()
model(torch.randn(4, 8, device="cuda")).sum().backward()
assert model.weight.grad.abs().sum().item() > 0
optimizer.step()
assert not torch.equal(before, model.weight.detach().cpu())
