"""A vision transformer on pictures that the host made.

needs: transformers
"""
import torch
from transformers import ViTConfig, ViTForImageClassification

config = ViTConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                   num_attention_heads=4, image_size=64, patch_size=8, num_labels=10)
model = ViTForImageClassification(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    pixels, labels = torch.randn(8, 3, 64, 64), torch.arange(8)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(pixels.cuda(), labels=labels.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
