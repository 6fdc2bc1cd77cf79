"""A graph's sizes follow from its edges: whole numbers are kept, though a copy has megabytes.

guesses: none
"""
import torch

NODES = 20000
one = torch.arange(200000) % NODES
other = (torch.arange(200000) * 7) % NODES
host = torch.stack([one, other])
edges = host.cuda()
assert torch.equal(edges.cpu(), host)
keep = edges[0] != edges[1]
assert keep.sum().item() == (one != other).sum().item()
kept = edges[:, keep]
assert kept.shape[1] == (one != other).sum().item()
nodes = int(kept.max()) + 1
assert nodes == NODES
degree = torch.bincount(kept[0], minlength=nodes)
assert degree.tolist() == torch.bincount(host[0][one != other], minlength=nodes).tolist()
assert torch.repeat_interleave(torch.arange(nodes, device="cuda"), degree).numel() == kept.shape[1]
loops = torch.arange(nodes, device="cuda").expand(2, -1)
joined = torch.cat([kept, loops], 1)
key, order = (joined[0] * nodes + joined[1]).sort()
assert torch.unique(key).numel() == torch.unique((host[0] * NODES + host[1])).numel() + \
    len(set(range(NODES)) - set(one[one == other].tolist()))
assert (key[1:] > key[:-1]).sum().item() + 1 == torch.unique(key).numel()
chosen = torch.zeros(nodes, dtype=torch.bool, device="cuda")
chosen[torch.arange(0, nodes, 4, device="cuda")] = True
assert chosen.nonzero().numel() == nodes // 4
hidden = torch.randn(nodes, 64, device="cuda", requires_grad=True)
hidden[chosen].sum().backward()
pinned = host.to(torch.int32).pin_memory().to("cuda", non_blocking=True)
assert pinned[1].unique().numel() == NODES
assert torch.tensor(one.tolist(), device="cuda").max().item() == NODES - 1
