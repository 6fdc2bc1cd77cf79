"""A card before 8-bit floats refuses them, as PyTorch says.

card: a100-40
"""
import torch

assert torch.cuda.get_device_capability() == (8, 0)
assert torch.cuda.is_bf16_supported()
a = torch.zeros(64, 128, device="cuda").to(torch.float8_e4m3fn)
one = torch.ones((), device="cuda")
try:
    torch._scaled_mm(a, a.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    raise AssertionError("an A100 multiplied 8-bit floats")
except (RuntimeError, ValueError, NotImplementedError) as error:
    assert "8.9" in str(error) or "compute capability" in str(error), error
