"""Optimisers in their ways: for each, foreach, fused; each a step of its own model."""
import torch

for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop,
             torch.optim.Adagrad, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax):
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = make(model.parameters(), lr=0.01)
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
for kind in ({"foreach": True}, {"foreach": False}, {"fused": True}):
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **kind)
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
