"""The same as two processes, which accelerate's own launcher starts: DDP over NCCL.

needs: accelerate
gpus: 2
with: -m accelerate.commands.launch --num_processes 2 --mixed_precision bf16
"""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
assert accelerator.num_processes == 2
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(TensorDataset(torch.randn(256, 64), torch.arange(256) % 10), batch_size=16)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for x, y in data:
    accelerator.backward(nn.functional.cross_entropy(model(x), y))
    optimizer.step()
    optimizer.zero_grad()
accelerator.wait_for_everyone()
accelerator.end_training()
