"""Accelerate prepares a model, an optimiser, a loader and a schedule; bf16.

needs: accelerate
"""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
data = DataLoader(TensorDataset(torch.randn(256, 64), torch.arange(256) % 10), batch_size=16)
model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
assert accelerator.device.type == "cuda"
for x, y in data:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    accelerator.gather_for_metrics((loss.detach(), y))
