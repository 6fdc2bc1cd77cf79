"""Parts of a model with an optimizer each, which step one after the other, as stages of a pipeline do.

One turn is one step, whatever the states of the second optimizer ask for. The steps have parts of
equal allocations, and the peak is in the last step.

options: --steps 4
unseen: what follows step 4 was not run
step: 3
"""
import torch

parts = [torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
         for _ in range(2)]
optimizers = [torch.optim.Adam(part.parameters()) for part in parts]
for turn in range(100):
    for width in range(4):  # pieces of a batch
        x = torch.randn(64, 256, device="cuda")
        for part in parts:
            x = part(x)
        x.sum().backward()
    more = torch.empty(turn << 24, device="cuda")
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    del more
