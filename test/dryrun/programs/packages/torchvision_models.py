"""torchvision: a ResNet-50 that classifies, and a Faster R-CNN whose boxes come from values.

needs: torchvision
"""
import torch
from torchvision.models import resnet50
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

model = resnet50(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(2, 3, 64, 64, device="cuda")),
                                             torch.arange(2, device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
del model, optimizer

finder = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None,
                                               num_classes=5).cuda()
pictures = [torch.rand(3, 96, 96, device="cuda") for _ in range(2)]
boxes = [{"boxes": torch.tensor([[10., 10., 50., 50.]], device="cuda"),
          "labels": torch.tensor([1], device="cuda")} for _ in range(2)]
sum(finder(pictures, boxes).values()).backward()
finder.eval()
with torch.no_grad():
    finder(pictures)
