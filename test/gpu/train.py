#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs for a GPU and for a dry run: train.py KIND [--batch N] [--steps N] ...

KIND  gpt2    124 million weights, bf16 autocast, fused attention, AdamW
      lengths gpt2 with another length in each step
      resnet  ResNet-50 of torchvision, 224 x 224, channels last, bf16 autocast, SGD
      lora    a Llama of 1.1 billion frozen weights in bf16, LoRA of rank 16 on q and v, AdamW
      fsdp    gpt2's blocks under fully_shard and NCCL, one rank

Data is random, the same in every run. One line of JSON says the peaks, the device's memory beside
the allocator's, the time of a step, the counters, how these rise in a step of the second half, and
the last loss. With --out the snapshot of all steps, from the first allocation, is kept as
FOLDER/KIND.pickle.gz. --largest looks for the largest batch that fits.

--allocator  native, expandable and async are PyTorch's own; torch and paged are Drystone's, whose
             package and library are found as for any program (PYTHONPATH, DRYSTONE_LIBRARY)
--conf       options of torch or paged, as text: drystone-pool(5)
"""
import argparse
import gc
import gzip
import json
import os
import pathlib
import pickle
import random
import sys
import tempfile
import time

SETTINGS = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
for name, setting in SETTINGS.items():  # before PyTorch looks
    if name in sys.argv:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

LENGTH = 1024
COUNTERS = ("num_alloc_retries", "num_device_alloc", "num_device_free")


class Attention(nn.Module):
    """Grouped queries; with rank > 0 the weights are frozen and q and v have adapters."""

    def __init__(self, width, heads, groups, rank=0):
        super().__init__()
        self.heads, self.groups = heads, groups
        each = width // heads
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(width, groups * each), nn.Linear(width, groups * each)
        self.adapters = nn.ModuleList()
        if rank:
            self.adapters += [nn.Sequential(nn.Linear(width, rank, bias=False),
                                            nn.Linear(rank, out, bias=False))
                              for out in (width, groups * each)]

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.adapters:
            q, v = q + self.adapters[0](x), v + self.adapters[1](x)
        q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2) for part, heads
                   in ((q, self.heads), (k, self.groups), (v, self.groups)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=self.heads != self.groups)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, groups, hidden, rank=0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, groups, rank)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Language(nn.Module):
    def __init__(self, words, layers, width, **block):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, **block) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), tokens.view(-1))


def gpt2(batch):
    model = Language(50257, 12, 768, heads=12, groups=12, hidden=3072).cuda()
    return model, torch.optim.AdamW(model.parameters()), lambda: (tokens(50257, batch),)


def lengths(batch):
    model, optimizer, _ = gpt2(batch)
    drawn = random.Random(0)
    return model, optimizer, lambda: (tokens(50257, batch, drawn.randint(LENGTH // 8, LENGTH)),)


def lora(batch):
    with torch.device("cuda"):
        model = Language(32000, 22, 2048, heads=32, groups=4, hidden=5632, rank=16).bfloat16()
    for name, weight in model.named_parameters():
        weight.requires_grad_("adapters" in name)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return model, torch.optim.AdamW(trained), lambda: (tokens(32000, batch),)


def fsdp(batch):
    from torch.distributed import init_process_group
    from torch.distributed.fsdp import fully_shard
    store = f"file://{tempfile.mkdtemp()}/store"
    init_process_group("nccl", init_method=store, rank=0, world_size=1)
    model = Language(50257, 12, 768, heads=12, groups=12, hidden=3072).cuda()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters()), lambda: (tokens(50257, batch),)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models import resnet50
        self.net = resnet50()

    def forward(self, images, labels):
        return F.cross_entropy(self.net(images), labels)


def resnet(batch):
    model = Classifier().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def images():
        pinned = torch.empty(batch, 3, 224, 224).pin_memory()
        return (pinned.cuda(non_blocking=True).to(memory_format=torch.channels_last),
                torch.zeros(batch, dtype=torch.long).cuda())
    return model, optimizer, images


def tokens(words, batch, length=LENGTH):
    return torch.randint(words, (batch, length)).pin_memory().cuda(non_blocking=True)


def step(model, optimizer, batch):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(*batch())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def beside():
    """Bytes of the device that are in use and not the allocator's."""
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def counters():
    """PyTorch's and, where Drystone's allocator has some, those of its driver's calls."""
    return {name: value for name, value in torch.cuda.memory_stats().items()
            if name in COUNTERS or name.startswith("drystone.")}


def rise(before, after, steps):
    return {name: round((after[name] - before[name]) / steps, 3)
            for name in after if name in before}


def train(given):
    torch.manual_seed(0)
    if given.out and given.allocator != "async":
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=400000)
    torch.zeros(1, device="cuda")
    context = beside()
    model, optimizer, batch = globals()[given.kind](given.batch)
    times, half = [], given.steps // 2
    for number in range(given.steps):
        if number == half:
            before = counters()
        begin = time.monotonic()
        loss = step(model, optimizer, batch)
        times.append((time.monotonic() - begin) * 1e3)
    stats, ordered = torch.cuda.memory_stats(), sorted(times)
    result = {"kind": given.kind, "batch": given.batch, "device": torch.cuda.get_device_name(),
              "torch": torch.__version__, "allocator": given.allocator, "conf": given.conf,
              "loss": loss, "steps": given.steps, "first_ms": round(times[0], 1),
              "step_ms": round(ordered[len(times) // 2], 2),
              "step_p10_ms": round(ordered[len(times) // 10], 2),
              "step_p90_ms": round(ordered[len(times) * 9 // 10], 2),
              "context": context, "beside": beside(),
              "a_step": rise(before, counters(), given.steps - half)}
    for name in ("allocated_bytes.all.peak", "requested_bytes.all.peak", "active_bytes.all.peak",
                 "reserved_bytes.all.peak", *COUNTERS):
        result[name.replace("_bytes.all.peak", "")] = stats.get(name)
    if given.out:
        keep(given)
    print(json.dumps(result), flush=True)


def fits(given, count):
    """Three steps with a batch of so many; what is left of a failure is let go."""
    try:
        model, optimizer, batch = globals()[given.kind](count)
        for _ in range(3):
            step(model, optimizer, batch)
        return True
    except torch.OutOfMemoryError:
        return False
    finally:
        model = optimizer = batch = None
        gc.collect()
        torch.cuda.empty_cache()


def find_largest(given):
    low, high = 0, given.batch
    while fits(given, high):
        low, high = high, 2 * high
    while high - low > max(1, low // 128):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(given, middle) else (low, middle)
    print(json.dumps({"kind": given.kind, "allocator": given.allocator, "largest": low}),
          flush=True)


def keep(given):
    path = pathlib.Path(given.out, f"{given.kind}.pickle.gz")
    with gzip.open(path, "wb", 6) as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["gpt2", "lengths", "resnet", "lora", "fsdp"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--allocator", default="native",
                        choices=["native", "expandable", "async", "torch", "paged"])
    parser.add_argument("--conf")
    given = parser.parse_args()
    if given.allocator in ("torch", "paged"):
        import drystone.torch
        drystone.torch.enable(given.allocator, conf=given.conf)
    find_largest(given) if given.largest else train(given)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
