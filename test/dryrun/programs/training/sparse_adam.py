"""An embedding with sparse gradients: memory for the rows that were met, not for all."""
import torch

ROWS, WIDTH = 100_000, 64
table = torch.nn.Embedding(ROWS, WIDTH, sparse=True).cuda()
optimizer = torch.optim.SparseAdam(table.parameters())
before = torch.cuda.memory_allocated()
table(torch.arange(128, device="cuda")).sum().backward()
assert table.weight.grad.is_sparse
assert table.weight.grad.shape == (ROWS, WIDTH)
assert torch.cuda.memory_allocated() - before < 1 << 20
optimizer.step()
assert torch.cuda.memory_allocated() - before >= 2 * ROWS * WIDTH * 4
