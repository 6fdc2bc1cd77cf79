# SPDX-License-Identifier: Apache-2.0
"""A freed block comes again only when its copies are over, whichever GPU and stream does them.

gpus: 2
"""
import numpy

from pinned_here import (MIB, address_of_freed, check, comes_again, enable_pinned, pinned,
                         pinned_clear, pinned_stats, torch, with_standin)

with_standin("late=1")  # work is over when somebody waits for it
enable_pinned(block_count=0)
targets = [torch.empty(MIB, dtype=torch.uint8, device=f"cuda:{n}") for n in (0, 1)]
side = torch.cuda.Stream()


def on_side(tensor):
    with torch.cuda.stream(side):
        targets[0].copy_(tensor, non_blocking=True)


def through_numpy(tensor):
    """The storage is NumPy's, the memory ours."""
    targets[0].copy_(torch.from_numpy(numpy.asarray(tensor)), non_blocking=True)


def into_view(tensor):
    tensor.view(2, -1)[1].copy_(targets[0][:MIB // 2], non_blocking=True)


ways = {
    "to the device": (lambda t: targets[0].copy_(t, non_blocking=True), torch.cuda.synchronize),
    "from the device": (lambda t: t.copy_(targets[0], non_blocking=True), torch.cuda.synchronize),
    "a view": (into_view, torch.cuda.synchronize),
    "to()": (lambda t: t.to("cuda", non_blocking=True), torch.cuda.synchronize),
    "a stream": (on_side, side.synchronize),
    "NumPy": (through_numpy, torch.cuda.synchronize),
    "the other GPU's default stream": (lambda t: targets[1].copy_(t, non_blocking=True),
                                       lambda: torch.cuda.synchronize(1)),
}
for name, (use, wait) in ways.items():
    address = address_of_freed(use)
    assert not comes_again(address), f"{name}: handed out while a copy may still read or write"
    assert pinned_stats()["pending_bytes"] == MIB, name
    wait()
    assert comes_again(address), f"{name}: not handed out after the copy"
    assert pinned_stats()["pending_bytes"] == 0, name
    torch.cuda.synchronize(0), torch.cuda.synchronize(1)

# Who waits for one of two streams has not waited for both.
address = address_of_freed(lambda t: (on_side(t), targets[1].copy_(t, non_blocking=True)))
side.synchronize()
assert not comes_again(address)
torch.cuda.synchronize(1)
assert comes_again(address)

# A clear gives nothing back that a copy may still use; nobody uses it: it comes at once.
address = address_of_freed(lambda t: targets[0].copy_(t, non_blocking=True))
pinned_clear()
assert pinned_stats()["pending_bytes"] == MIB and not comes_again(address)
torch.cuda.synchronize()
assert comes_again(address)
assert comes_again(address_of_freed(lambda t: t.fill_(1)))
check()
pinned(1)
