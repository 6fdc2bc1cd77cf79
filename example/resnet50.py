#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 in training, on images of 224 by 224, without torchvision.

    drystone dry-run --vary BATCH=8,16,32,64 -- python3 example/resnet50.py --batch {BATCH}
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


def convolve(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.narrow, self.wide = convolve(inputs, width, 1), convolve(width, 4 * width, 1)
        self.middle = convolve(width, width, 3, stride)
        self.way = nn.Identity()
        if stride > 1 or inputs != 4 * width:
            self.way = convolve(inputs, 4 * width, 1, stride)

    def forward(self, x):
        y = F.relu(self.narrow(x), inplace=True)
        y = self.wide(F.relu(self.middle(y), inplace=True))
        return F.relu(y + self.way(x), inplace=True)


def make():
    layers, inputs = [convolve(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for number in range(count):
            stride = 2 if stage and number == 0 else 1
            layers.append(Bottleneck(inputs, 64 << stage, stride))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    model = make().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(options.batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (options.batch,), device="cuda")
    for _ in range(options.steps):
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
