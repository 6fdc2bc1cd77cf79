"""Numbers that no kernel computed decide sizes and a branch: each line is named, the loss is not.

guesses: 15 nonzero, 16 unique, 17 item, 18 copy, 19 item, 24 nonzero, 27 nonzero
"""
import io

import torch

scores = torch.randn(1000, 8, device="cuda")
loss = scores.sum()
print(loss.item())  # a number for the log decides nothing
experts = scores.argmax(1)
right = 0
right += (experts == torch.zeros_like(experts)).sum().item()  # only added up: as good as a log
rows = scores[scores.amax(1) > 0.5]
unique = torch.unique(experts)
longest = experts.max().item()
counts = experts.tolist()
if (scores > 3).any():
    print("never here")
known = torch.tensor([3, 0, 2], device="cuda")
assert known.nonzero().numel() == 2 and known.max().item() == 3
known.add_(experts[:3])
print(known.nonzero().shape)
stale = torch.zeros(8, dtype=torch.bool, device="cuda")
stale[experts] = True
print(stale.nonzero().shape)
torch.save({"experts": experts}, io.BytesIO())  # what is saved decides nothing
experts.to("meta")  # nor do shapes alone
print(known, scores)  # nor what is printed
