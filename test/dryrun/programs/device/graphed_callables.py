"""Parts of a model as graphs, forward and backward, trained as any other module."""
import torch

first = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()).cuda()
last = torch.nn.Linear(256, 10).cuda()
sample = torch.randn(32, 256, device="cuda", requires_grad=True)
first = torch.cuda.make_graphed_callables(first, (sample,))
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
labels = torch.zeros(32, dtype=torch.long, device="cuda")
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(last(first(sample.detach())), labels)
    loss.backward()
    assert all(p.grad is not None for p in first.parameters())
    optimizer.step()
