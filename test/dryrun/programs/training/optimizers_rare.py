"""Optimisers that few use; each takes up its state again from what it saved."""
import torch

RARE = ("Adadelta", "Rprop", "ASGD", "Adafactor", "Adamax", "Muon")
for name in RARE:
    make = getattr(torch.optim, name, None)
    if make is None:
        continue  # of a later release
    model = torch.nn.Linear(128, 128, bias=False).cuda()
    optimizer = make(model.parameters(), lr=0.01)
    model(torch.randn(8, 128, device="cuda")).sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()
    other = make(model.parameters(), lr=0.5)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 0.01
    other.step()
    count = len(other.state_dict()["state"][0])
    assert count == len(saved["state"][0]) > 0, name
