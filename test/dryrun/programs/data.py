"""Numbers that come from the host stay what they are; new blocks read as zeros."""
import torch

assert torch.tensor([5], device="cuda").item() == 5
numbers = torch.arange(1000.0)
assert torch.equal(numbers.cuda().cpu(), numbers)
for _ in range(20):
    old = torch.full((1000,), 7.0).cuda()
    del old
    new = torch.empty(1000, device="cuda")
    assert new.cpu().sum() == 0
    assert torch.nonzero(new).shape[0] == 0
kept = torch.tensor([1, 2, 3], device="cuda")
assert kept.tolist() == [1, 2, 3]
