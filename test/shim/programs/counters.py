# SPDX-License-Identifier: Apache-2.0
"""memory_stats() has the pool's driver calls, moved pages and driver time under keys of Drystone's:
zeros on a device before its first use, no more for memory that is there.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

import torch

KEYS = ["driver_calls", "driver_time_us", "pages_moved"]
MIB = 1 << 20


def look(device=0):
    stats = torch.cuda.memory_stats(device)
    found = {key[9:]: value for key, value in stats.items() if key.startswith("drystone.")}
    assert sorted(found) == KEYS and all(type(value) is int for value in found.values()), found
    assert torch.cuda.memory_stats_as_nested_dict(device)["drystone"].keys() == found.keys()
    return found


support.begin()
assert torch.cuda.memory_stats(0) == {}
torch.cuda.init()
assert not any(look(0).values()) and not any(look(1).values())
large = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
first = look()
assert first["driver_calls"] > 0 and first["pages_moved"] == 0, first
assert not any(look(1).values())
for _ in range(10):
    del large
    large = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
assert look() == first
# No run of free pages is long enough for what follows; with placement paged they are moved.
parts = [torch.empty(20 * MIB, dtype=torch.uint8, device="cuda") for _ in range(24)]
del parts[::2], large
large = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
after = look()
assert after["driver_calls"] > first["driver_calls"], after
assert after["driver_time_us"] >= first["driver_time_us"]
assert (after["pages_moved"] > 0) == (support.PLACEMENT == "paged"), after
support.passed()
