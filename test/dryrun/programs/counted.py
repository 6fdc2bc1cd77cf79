"""A count that is divided and rounded is what it was; that of unknown numbers is a guess.

guesses: 19 item, 20 item
"""
import torch

labels = torch.full((4, 1000), -100)
labels[:, 300:] = 7
labels = labels.cuda()
valid = (labels != -100).sum()
padded = (valid / 256).ceil().to(torch.int64) * 256
assert [start for start in range(0, padded, 256)] == list(range(0, 2816, 256))
half = torch.div(valid, 3).round().long()
assert half.item() == 933
rows = torch.empty(padded, 16, device="cuda")
assert rows.shape[0] == 2816
scores = (torch.randn(100, device="cuda") > 0).sum()
blocks = (scores / 8).ceil().long()
print(torch.empty(blocks, 16, device="cuda").shape)
if blocks > 3:
    print("never here")
