"""Masks and counts: how much they select is what they say, not nothing.

guesses: none
"""
import torch

labels = torch.tensor([[5, -100, 7, 8], [-100, -100, 1, 2]], device="cuda")
mask = labels != -100
assert mask.sum().item() == 5
hidden = torch.randn(2, 4, 64, device="cuda", requires_grad=True)
chosen = hidden[mask]
assert chosen.shape == (5, 64)
chosen.sum().backward()
assert labels[mask].tolist() == [5, 7, 8, 1, 2]
assert torch.nonzero(mask).tolist() == [[0, 0], [0, 2], [0, 3], [1, 2], [1, 3]]
assert torch.ones(3, 4, dtype=torch.bool, device="cuda").all()
assert torch.arange(6, device="cuda").cumsum(0)[-1].item() == 15
lengths = (labels[:, 1:].contiguous() != -100).long().sum(-1)
assert lengths.tolist() == [2, 2] and lengths.max().item() == 2
assert torch.masked_select(hidden, mask[..., None]).shape == (320,)
assert not torch.isnan(hidden).any()
torch.optim.AdamW([hidden], lr=torch.tensor(0.1, device="cuda"), capturable=True)
