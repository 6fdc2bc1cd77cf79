"""bitsandbytes: optimisers with states of 8 bits, paged ones, layers of 8 and of 4 bits.

needs: bitsandbytes
"""
import bitsandbytes as bnb
import torch
from torch import nn

for make in (bnb.optim.AdamW8bit, bnb.optim.PagedAdamW8bit, bnb.optim.Lion8bit, bnb.optim.AdamW):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    optimizer = make(model.parameters(), lr=1e-3)
    for _ in range(2):
        model(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    state = optimizer.state[model[0].weight]["state1"]
    assert state.dtype is (torch.float32 if make is bnb.optim.AdamW else torch.uint8)

x = torch.randn(32, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
for layer in (bnb.nn.Linear8bitLt(256, 256, has_fp16_weights=False, threshold=6.0),
              bnb.nn.Linear4bit(256, 256, compute_dtype=torch.bfloat16, quant_type="nf4"),
              bnb.nn.Linear4bit(256, 256, compute_dtype=torch.bfloat16, compress_statistics=True)):
    before = torch.cuda.memory_allocated()
    layer = layer.cuda()
    assert torch.cuda.memory_allocated() - before < 256 * 256 * 2
    layer(x).sum().backward()
