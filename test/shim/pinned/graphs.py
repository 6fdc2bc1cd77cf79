# SPDX-License-Identifier: Apache-2.0
"""Memory that a captured graph uses is nobody else's before the graph is gone."""
import gc

from pinned_here import (MIB, address_of_freed, check, comes_again, enable_pinned, pinned,
                         pinned_clear, pinned_stats, torch)

enable_pinned(block_count=0)
target = torch.empty(MIB, dtype=torch.uint8, device="cuda")


def held():
    return pinned_stats()["held_bytes"]


def forget(graph):
    graph.reset()
    torch.cuda.synchronize()
    pinned(1)  # the first to come notices


# A block from before the capture, and one that the capture frees.
graph, before = torch.cuda.CUDAGraph(), pinned(MIB)
before_address = before.data_ptr()
with torch.cuda.graph(graph):
    target.copy_(before, non_blocking=True)
    inside = address_of_freed(lambda t: target.copy_(t, non_blocking=True))
    again = address_of_freed(lambda t: t.copy_(target, non_blocking=True))
assert len({before_address, inside, again}) == 3 and held() == 2 * MIB
graph.replay()
torch.cuda.synchronize()
del before
assert held() == 3 * MIB
for address in (before_address, inside, again):
    assert not comes_again(address), "handed out while a graph can run"
pinned_clear()
assert held() == 3 * MIB and pinned_stats()["idle_bytes"] == 0
graph.replay()
forget(graph)
assert held() == 0 and comes_again(inside)

# Two graphs that share a pool end one after the other.
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
both = pinned(MIB)
with torch.cuda.graph(first):
    target.copy_(both, non_blocking=True)
with torch.cuda.graph(second, pool=first.pool()):
    target.copy_(both, non_blocking=True)
address = both.data_ptr()
del both
forget(first)
assert not comes_again(address)
forget(second)
assert held() == 0, held()
assert comes_again(address)

# A capture that fails holds nothing for ever.
broken = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(broken):
        address_of_freed(lambda t: target.copy_(t, non_blocking=True))
        raise KeyError("in the middle")
except KeyError:
    pass
del broken
gc.collect()
pinned(1)
assert held() == 0, held()

# A graph of a stream that joined the capture; and use outside of captures goes on as ever.
joined, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(joined):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        address = address_of_freed(lambda t: target.copy_(t, non_blocking=True))
    torch.cuda.current_stream().wait_stream(side)
assert held() == MIB and not comes_again(address)
assert comes_again(address_of_freed(lambda t: target.copy_(t, non_blocking=True)))
forget(joined)
assert held() == 0
check()
