"""Two graphs that share a pool: the second lies where the first lay."""
import torch


def capture(pool):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        x = torch.zeros(8 << 20, device="cuda")
        y = x * 2
        del x, y
    return graph


pool = torch.cuda.graph_pool_handle()
kept = [capture(pool)]
reserved = torch.cuda.memory_reserved()
kept.append(capture(pool))
assert torch.cuda.memory_reserved() == reserved
kept.append(capture(None))
both = torch.cuda.memory_reserved()
assert 2 * reserved - (4 << 20) <= both <= 2 * reserved
for graph in kept:
    graph.replay()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == both  # graphs hold their pools
