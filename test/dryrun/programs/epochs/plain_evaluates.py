"""No loader: steps are counted, in a context; the evaluation after the last epoch is too much.

card: v100-16
expect: oom
"""
import contextlib

import torch


def main():
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(100000):
        with contextlib.nullcontext():
            for step in range(100000):
                loss = model(torch.randn(8, 256, device="cuda")).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    with torch.no_grad():
        model(torch.empty(10_000_000, 256, device="cuda")).relu()


main()
