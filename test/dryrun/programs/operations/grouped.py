"""One product for each expert, in one call."""
import torch

grouped = getattr(torch, "_grouped_mm", None)
grouped = getattr(torch.nn.functional, "grouped_mm", grouped)
tokens = torch.zeros(64, 128, device="cuda", dtype=torch.bfloat16)
weights = torch.zeros(4, 128, 32, device="cuda", dtype=torch.bfloat16)
ends = torch.tensor([10, 20, 40, 64], dtype=torch.int32).cuda()
if grouped:
    y = grouped(tokens, weights, offs=ends)
    assert y.shape == (64, 32) and y.dtype == torch.bfloat16
else:  # a release before it
    parts = [part @ weights[i] for i, part in
             enumerate(tokens.tensor_split(ends[:-1].tolist()))]
    y = torch.cat(parts)
    assert y.shape == (64, 32)
assert ends.tolist() == [10, 20, 40, 64]
