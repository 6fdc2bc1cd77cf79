"""L-BFGS, which calls the model many times a step and keeps flat copies of all weights."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).cuda()
x = torch.randn(256, 64, device="cuda")
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss


for search in (None, "strong_wolfe"):
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5, tolerance_grad=-1,
                                  tolerance_change=-1, line_search_fn=search)
    optimizer.step(closure)
state = optimizer.state[optimizer._params[0]]
assert calls > 5
assert state["d"].numel() == sum(p.numel() for p in model.parameters())
