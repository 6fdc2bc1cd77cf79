"""A residual net of bottlenecks with batch norms, trained and then used.

convolutions: float
"""
import torch
from torch import nn


def norm(given, made, size, stride=1):
    return nn.Sequential(nn.Conv2d(given, made, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(made))


class Bottleneck(nn.Module):
    def __init__(self, given, width, stride):
        super().__init__()
        self.body = nn.Sequential(norm(given, width, 1), nn.ReLU(True), norm(width, width, 3, stride),
                                  nn.ReLU(True), norm(width, 4 * width, 1))
        is_same = stride == 1 and given == 4 * width
        self.way = nn.Identity() if is_same else norm(given, 4 * width, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.way(x))


layers = [norm(3, 16, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
given = 16
for width, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2)):
    layers.append(Bottleneck(given, width, stride))
    given = 4 * width
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for _ in range(2):
    loss = nn.functional.cross_entropy(model(torch.zeros(8, 3, 64, 64, device="cuda")),
                                       torch.zeros(8, dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
trained = torch.cuda.max_memory_allocated()
model.eval()
torch.cuda.reset_peak_memory_stats()
optimizer.zero_grad()
with torch.inference_mode():
    y = model(torch.zeros(8, 3, 64, 64, device="cuda"))
assert y.shape == (8, 10) and not y.requires_grad
assert torch.cuda.max_memory_allocated() < trained
