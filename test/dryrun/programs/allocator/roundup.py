"""Requests are rounded up to quarters between powers of two.

conf: roundup_power2_divisions:4
rules: torch
"""
import torch

MIB = 1 << 20
for asked, given in ((33, 40), (41, 48), (57, 64), (64, 64), (130, 160)):
    x = torch.empty(asked * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == given * MIB, (asked, torch.cuda.memory_allocated())
    assert torch.cuda.memory_stats()["requested_bytes.all.current"] == asked * MIB
    del x
