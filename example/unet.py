#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A U-Net of the size of Stable Diffusion 1's, 860 million weights, that makes an image.

    drystone dry-run --memory 3.71GiB -- python3 example/unet.py --size 512 --attention fused

The text's encoder and the decoder of the image are left out: each has a peak of its own.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F

WIDTHS, HEADS, TEXT, TIME = (320, 640, 1280, 1280), 8, 768, 1280
fused = True


class Attention(nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(context, width, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width)

    def forward(self, x, context):
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                   for y in (self.q(x), self.k(context), self.v(context)))
        if fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.enter, self.leave = (nn.Conv2d(width, width, 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.text = Attention(width, width), Attention(width, TEXT)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, text):
        y = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        z = self.norms[0](y)
        y = y + self.own(z, z)
        y = y + self.text(self.norms[1](y), text)
        value, gate = self.up(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        return x + self.leave(y.transpose(1, 2).unflatten(2, x.shape[2:]))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, has_transformer):
        super().__init__()
        self.first, self.second = nn.GroupNorm(32, inputs), nn.GroupNorm(32, outputs)
        self.enter = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.leave = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.way = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.transformer = Transformer(outputs) if has_transformer else None

    def forward(self, x, time, text):
        y = self.enter(F.silu(self.first(x))) + self.time(F.silu(time))[:, :, None, None]
        x = self.way(x) + self.leave(F.silu(self.second(y)))
        return self.transformer(x, text) if self.transformer else x


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTHS[0], TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.enter = nn.Conv2d(4, WIDTHS[0], 3, padding=1)
        self.down, self.smaller, self.up, self.larger = (nn.ModuleList() for _ in range(4))
        width, kept = WIDTHS[0], [WIDTHS[0]]
        for level, wider in enumerate(WIDTHS):
            for _ in range(2):
                self.down.append(Residual(width, wider, level < 3))
                width = wider
                kept.append(width)
            if level < 3:
                self.smaller.append(nn.Conv2d(width, width, 3, 2, 1))
                kept.append(width)
        self.middle = nn.ModuleList((Residual(width, width, True), Residual(width, width, False)))
        for level in (3, 2, 1, 0):
            for _ in range(3):
                self.up.append(Residual(width + kept.pop(), WIDTHS[level], level < 3))
                width = WIDTHS[level]
            if level:
                self.larger.append(nn.Conv2d(width, width, 3, padding=1))
        self.leave = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(),
                                   nn.Conv2d(width, 4, 3, padding=1))

    def forward(self, x, time, text):
        time, x = self.time(time), self.enter(x)
        kept = [x]
        for number, block in enumerate(self.down):
            x = block(x, time, text)
            kept.append(x)
            if number in (1, 3, 5):
                x = self.smaller[number // 2](x)
                kept.append(x)
        for block in self.middle:
            x = block(x, time, text)
        for number, block in enumerate(self.up):
            x = block(torch.cat((x, kept.pop()), 1), time, text)
            if number in (2, 5, 8):
                x = self.larger[number // 3](F.interpolate(x, scale_factor=2.0))
        return self.leave(x)


@torch.inference_mode()
def main():
    global fused
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--images", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--attention", choices=("fused", "plain"), default="fused")
    options = parser.parse_args()
    fused = options.attention == "fused"
    torch.set_default_dtype(torch.float16)
    with torch.device("meta"):
        model = UNet()
    model.to_empty(device="cuda")  # a checkpoint would be read into it
    rows, size = 2 * options.images, options.size // 8  # with the text and without
    image = torch.randn(options.images, 4, size, size, device="cuda")
    time = torch.randn(rows, WIDTHS[0], device="cuda")
    text = torch.randn(rows, 77, TEXT, device="cuda")
    for _ in range(options.steps):
        without, given = model(image.repeat(2, 1, 1, 1), time, text).chunk(2)
        image = image - 0.05 * (without + 7.5 * (given - without))
    print(sum(weight.numel() for weight in model.parameters()), "weights")


if __name__ == "__main__":
    main()
