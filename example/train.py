#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training program on a GPU: a GPT of 163 million weights on random tokens.

    python3 example/train.py --batch 8
    drystone dry-run --card t4 -- python3 example/train.py --batch 8     # without a GPU
"""
import argparse

import small_gpt
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    stages, loss_of, tokens = small_gpt.make(layers=12, width=768, heads=12, length=512,
                                             vocab=50257)
    model = torch.nn.Sequential(*stages).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(options.steps):
        loss = loss_of(model(tokens(options.batch).to("cuda")))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
