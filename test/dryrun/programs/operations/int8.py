"""Products of 8-bit integers, and fake quantisation as training for it uses."""
import torch

a = torch.zeros(64, 128, device="cuda", dtype=torch.int8)
b = torch.zeros(128, 64, device="cuda", dtype=torch.int8)
y = torch._int_mm(a, b)
assert y.shape == (64, 64) and y.dtype == torch.int32 and y.element_size() == 4
x = torch.zeros(64, 64, device="cuda", requires_grad=True)
fake = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)
fake.sum().backward()
assert x.grad.shape == x.shape
scales, points = torch.ones(64, device="cuda"), torch.zeros(64, dtype=torch.int32, device="cuda")
rows = torch.fake_quantize_per_channel_affine(x, scales, points, 0, -128, 127)
assert rows.shape == x.shape
packed = torch.quantize_per_tensor(torch.arange(8.0), 0.5, 0, torch.qint8)
assert packed.int_repr()[2] == 4
before = torch.cuda.memory_allocated()
small = torch.zeros(1 << 20, device="cuda", dtype=torch.int8)
assert torch.cuda.memory_allocated() - before == 1 << 20
