# SPDX-License-Identifier: Apache-2.0
"""A model is trained with placement torch, whose options are those of the environment.

conf: expandable_segments:True
"""
import torch

import drystone.torch as dt

dt.enable("torch", seam="pluggable")
assert dt.enabled() == "torch"
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(),
                            torch.nn.Linear(512, 512)).cuda()
step = torch.optim.AdamW(model.parameters())
for _ in range(5):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    loss.backward()
    step.step()
    step.zero_grad(set_to_none=True)
