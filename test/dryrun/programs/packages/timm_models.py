"""A ResNet and a ViT of timm, with an average of the weights and timm's own optimiser.

needs: timm
"""
import timm
import torch
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

for name, more in (("resnet18", {}), ("vit_tiny_patch16_224", {"img_size": 64, "depth": 2})):
    model = timm.create_model(name, num_classes=10, **more).cuda()
    model = model.to(memory_format=torch.channels_last)
    optimizer = create_optimizer_v2(model, opt="lamb", lr=1e-3, weight_decay=0.05)
    average = ModelEmaV3(model)
    for _ in range(2):
        pixels = torch.randn(4, 3, 64, 64).cuda().contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pixels), torch.arange(4).cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update(model)
