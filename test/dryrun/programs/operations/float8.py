"""Products of 8-bit floats, with scales; half the memory of 16 bits; not on an old card."""
import torch

a = torch.zeros(64, 128, device="cuda").to(torch.float8_e4m3fn)
b = torch.zeros(256, 128, device="cuda").to(torch.float8_e4m3fn)
assert a.element_size() == 1
one = torch.ones((), device="cuda")
for kind in (torch.bfloat16, torch.float32):
    y = torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=kind)
    assert y.shape == (64, 256) and y.dtype == kind
rows = torch._scaled_mm(a, b.t(), scale_a=torch.ones(64, 1, device="cuda"),
                        scale_b=torch.ones(1, 256, device="cuda"), out_dtype=torch.bfloat16)
assert rows.shape == (64, 256)
try:
    torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    raise AssertionError("shapes that do not fit")
except RuntimeError:
    pass
