"""Gradients of gradients, as penalties on them need; the graph is kept for that."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1)).cuda()
x = torch.zeros(512, 64, device="cuda", requires_grad=True)


def peak_of(twice):
    model.zero_grad()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = model(x).sum()
    slope, = torch.autograd.grad(y, x, create_graph=twice)
    assert slope.requires_grad == twice
    if twice:
        (slope.norm(2, dim=1) - 1).square().mean().backward()
        assert model[0].weight.grad.shape == (256, 64)
    return torch.cuda.max_memory_allocated() - before


peak_of(False)
peak_of(True)
once, twice = peak_of(False), peak_of(True)
assert twice > once, (once, twice)
y = model(x).sum()
y.backward()
try:
    y.backward()
    raise AssertionError("a graph that was freed went backward")
except RuntimeError as error:
    assert "second time" in str(error)
