# SPDX-License-Identifier: Apache-2.0
"""Without a word of how much, a modest share of the host is pinned ahead, and the call says it."""
import pathlib
import re
import time

from pinned_here import MIB, check, enable_pinned, pinned, pinned_stats, torch


def pinned_bytes():
    return pinned_stats()["allocated_bytes.current"]


free = int(re.search(r"MemAvailable: *(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
torch.cuda.init()
ahead = enable_pinned()
assert enable_pinned() == ahead and ahead % (2 * MIB) == 0, ahead
assert ahead <= 1024 * MIB and ahead <= 1.2 * free / 16, (ahead, free)
end = time.monotonic() + 120
while pinned_bytes() < ahead and time.monotonic() < end:
    time.sleep(0.05)
assert pinned_bytes() == ahead, (pinned_bytes(), ahead)
kept = pinned(16 * MIB)
assert kept.is_pinned() and pinned_bytes() == ahead  # out of what is there
check()
torch.ones(1, device="cuda")
