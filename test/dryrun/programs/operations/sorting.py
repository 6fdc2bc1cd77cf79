"""Results whose sizes the data say: on a stand-in they are small, not garbage."""
import torch

x = torch.zeros(10_000, device="cuda")
values, places = torch.sort(x)
assert values.shape == places.shape == (10_000,) and places.dtype == torch.long
assert torch.topk(x, 7).values.shape == (7,)
assert torch.argsort(x, descending=True).shape == (10_000,)
assert torch.nonzero(x).shape == (0, 1)
assert torch.masked_select(x, x > 0).shape == (0,)
assert x[x > 0].numel() == 0
assert torch.unique(x).numel() <= 10_000
values, back, counts = torch.unique(x.long(), return_inverse=True, return_counts=True)
assert back.shape == (10_000,) and counts.shape == values.shape
assert torch.unique_consecutive(x).numel() <= 10_000
assert torch.kthvalue(x, 5).values.shape == () and torch.median(x).shape == ()
assert torch.cumsum(x, 0).shape == (10_000,)
assert torch.searchsorted(x, torch.zeros(5, device="cuda")).shape == (5,)
assert torch.histc(x, 10).shape == (10,)
assert torch.cuda.max_memory_allocated() < 8 << 20
