"""Something else than memory ends it: nobody knows whether it would have fitted.

expect: unknown
"""
import torch

x = torch.empty(1 << 20, device="cuda")
raise RuntimeError("the data set is not there")
