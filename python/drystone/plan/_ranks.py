# SPDX-License-Identifier: Apache-2.0
"""One plan on all ranks: measured times differ, and ranks that recompute different stages wait
for each other for ever in their collectives."""
import hashlib
import json

import torch
import torch.distributed as dist

from ._errors import PlanError


def _text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def rank_hash(plan):
    """Of what a rank carries out, the chain it was made for included."""
    told = {key: plan.get(key) for key in ("items", "input_hash", "plan_hash")}
    return hashlib.sha256(_text(told).encode()).hexdigest()[:15]


def _device(group):
    return "cuda" if dist.get_backend(group) == "nccl" else "cpu"


def share(plan, group=None, source=0):
    """The plan of rank `source`, on every rank; others may pass None."""
    text = _text(plan).encode() if dist.get_rank() == source else b""
    length = torch.tensor([len(text)], device=_device(group))
    dist.broadcast(length, source, group)
    box = torch.zeros(int(length), dtype=torch.uint8, device=_device(group))
    if text:
        box.copy_(torch.tensor(list(text), dtype=torch.uint8))
    dist.broadcast(box, source, group)
    return json.loads(bytes(box.tolist()))


def check_ranks(plan, group=None):
    """The hash that all ranks have; PlanError, on all of them, if they differ."""
    mine = torch.tensor([int(rank_hash(plan), 16)], device=_device(group))
    all_hashes = [torch.zeros_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_hashes, mine, group)
    other = [rank for rank, value in enumerate(all_hashes) if int(value) != int(all_hashes[0])]
    if other:
        raise PlanError(f"ranks {other} have another plan than rank 0: share() it first")
    return rank_hash(plan)
