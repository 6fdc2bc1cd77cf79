"""SGD with and without momentum: one more copy of the weights, made at the first step."""
import torch

WEIGHTS = 1024 * 1024 * 4
for kind in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
             {"momentum": 0.9, "fused": True}, {"momentum": 0.9, "foreach": False}):
    model = torch.nn.Linear(1024, 1024, bias=False).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01, **kind)
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    before = torch.cuda.memory_allocated()
    optimizer.step()
    grown = torch.cuda.memory_allocated() - before
    assert grown == (WEIGHTS if kind else 0), (kind, grown)
    optimizer.zero_grad()
    assert torch.cuda.memory_allocated() == before + grown - WEIGHTS
    del model, optimizer
