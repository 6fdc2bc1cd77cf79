# SPDX-License-Identifier: Apache-2.0
"""One plan on all ranks: measured times differ, and ranks that recompute different stages wait
for each other for ever in their collectives."""
from __future__ import annotations

import hashlib
import json

import torch
import torch.distributed as dist

from ._errors import PlanError
from ._types import Json


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def rank_hash(plan: Json) -> str:
    """Of what a rank carries out, the chain it was made for included."""
    told = {key: plan.get(key) for key in ("items", "input_hash", "plan_hash")}
    return hashlib.sha256(_text(told).encode()).hexdigest()[:15]


def _device(group: dist.ProcessGroup | None) -> str:
    return "cuda" if dist.get_backend(group) == "nccl" else "cpu"


def share(plan: Json | None, group: dist.ProcessGroup | None = None, source: int = 0) -> Json:
    """The plan of rank `source`, on every rank; others may pass None."""
    text = _text(plan).encode() if dist.get_rank() == source else b""
    length = torch.tensor([len(text)], device=_device(group))
    dist.broadcast(length, source, group)
    box = torch.zeros(int(length), dtype=torch.uint8, device=_device(group))
    if text:
        box.copy_(torch.tensor(list(text), dtype=torch.uint8))
    dist.broadcast(box, source, group)
    shared: Json = json.loads(bytes(box.tolist()))
    return shared


def check_ranks(plan: Json, group: dist.ProcessGroup | None = None) -> str:
    """The hash that all ranks have; PlanError, on all of them, if they differ."""
    mine = torch.tensor([int(rank_hash(plan), 16)], device=_device(group))
    all_hashes = [torch.zeros_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_hashes, mine, group)
    other = [rank for rank, value in enumerate(all_hashes) if int(value) != int(all_hashes[0])]
    if other:
        raise PlanError(f"ranks {other} have another plan than rank 0: share() it first")
    return rank_hash(plan)
