"""torchao: weights that are quantised, an optimiser with states of 8 bits, and on the host.

needs: torchao
"""
import torch
from torch import nn
from torchao.optim import AdamW4bit, AdamW8bit
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig
from torchao.quantization import quantize_

for config in (Int8WeightOnlyConfig(), Int8DynamicActivationInt8WeightConfig()):
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    model = model.to("cuda", torch.bfloat16)
    before = torch.cuda.memory_allocated()
    quantize_(model, config)
    assert torch.cuda.memory_allocated() < before
    with torch.no_grad():
        model(torch.randn(16, 256, device="cuda", dtype=torch.bfloat16))

if __name__ == "__main__":
    for make in (AdamW8bit, AdamW4bit):
        model = nn.Linear(256, 256).cuda()
        optimizer = make(model.parameters(), lr=1e-3)
        for _ in range(3):
            model(torch.randn(16, 256, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
