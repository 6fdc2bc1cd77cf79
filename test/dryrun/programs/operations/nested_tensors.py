"""Tensors of rows of unequal lengths: they take the memory of their elements alone."""
import torch

rows = [torch.zeros(n, 64) for n in (3, 100, 7)]
before = torch.cuda.memory_allocated()
x = torch.nested.nested_tensor(rows, device="cuda", layout=torch.jagged, requires_grad=True)
assert x.is_nested and x.size(0) == 3 and x.size(2) == 64
assert x.values().shape == (110, 64) and x.offsets().shape == (4,)
assert torch.cuda.memory_allocated() - before < 110 * 64 * 4 + 4096
layer = torch.nn.Linear(64, 64).cuda()
y = torch.nn.functional.gelu(layer(x))
assert y.values().shape == (110, 64)
y.values().sum().backward()
assert layer.weight.grad.shape == (64, 64)
padded = torch.nested.to_padded_tensor(y, 0.0)
assert padded.shape == (3, 100, 64)
old = torch.nested.nested_tensor(rows, device="cuda")
assert [tuple(part.shape) for part in old.unbind()] == [(3, 64), (100, 64), (7, 64)]
