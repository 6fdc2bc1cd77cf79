"""Elements chosen, put and added by indices, with their gradients."""
import torch

x = torch.zeros(100, 32, device="cuda", requires_grad=True)
rows = torch.randint(100, (40,)).cuda()
y = x[rows] + x.index_select(0, rows)
assert y.shape == (40, 32)
z = torch.zeros(100, 32, device="cuda").index_add(0, rows, y)
z = z.index_put((rows,), y, accumulate=True).scatter(0, rows[:, None].expand(40, 32), y)
z = z.scatter_add(0, rows[:, None].expand(40, 32), y).index_copy(0, rows, y)
z = z.scatter_reduce(0, rows[:, None].expand(40, 32), y, "amax")
assert z.shape == (100, 32)
torch.gather(z, 1, torch.zeros(100, 4, dtype=torch.long, device="cuda")).sum().backward()
assert x.grad.shape == x.shape
x.grad = None
(x[:, ::2].flip(0).roll(3, 1) * 2)[..., None].expand(-1, -1, 3).sum().backward()
assert x.grad.shape == x.shape
assert torch.take_along_dim(x, rows[:, None].expand(40, 32), 0).shape == (40, 32)
assert x.masked_fill(x > 0, 1.0).shape == x.shape
assert torch.where(x > 0, x, 0.0).shape == x.shape
assert torch.bincount(rows, minlength=100).shape == (100,)
