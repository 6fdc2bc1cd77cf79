"""An out-of-memory that is caught, as searches for a batch size do: it did not fit.

card: t4-16
expect: oom
"""
import torch

try:
    torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    assert "14.56 GiB" in str(error), error
torch.empty(1 << 20, device="cuda")
