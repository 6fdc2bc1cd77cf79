"""Sparse matrices by coordinates and by rows: their sizes, and products with dense ones."""
import torch

places = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
a = torch.sparse_coo_tensor(places, torch.ones(4), (4, 4)).cuda()
assert a.is_sparse and a._nnz() == 4 and a.is_cuda
assert torch.equal(a._indices().cpu(), places)
dense = torch.zeros(4, 8, device="cuda")
assert torch.sparse.mm(a, dense).shape == (4, 8)
assert (a @ dense).shape == (4, 8)
ends, columns = torch.arange(0, 5).cuda(), torch.tensor([1, 2, 3, 0]).cuda()
rows = torch.sparse_csr_tensor(ends, columns, torch.ones(4).cuda(), (4, 4))
assert rows.layout == torch.sparse_csr and rows.crow_indices().tolist() == [0, 1, 2, 3, 4]
assert (rows @ dense).shape == (4, 8)
assert torch.addmm(torch.zeros(4, 8, device="cuda"), rows, dense).shape == (4, 8)
assert (rows @ torch.zeros(4, device="cuda")).shape == (4,)
assert a.to_dense().shape == (4, 4) and rows.to_dense().shape == (4, 4)
values = torch.ones(4, device="cuda", requires_grad=True)
made = torch.sparse_coo_tensor(places.cuda(), values, (4, 4))
torch.sparse.sum(made).backward()
assert values.grad.shape == (4,)
before = torch.cuda.memory_allocated()
large = torch.sparse_coo_tensor(places, torch.ones(4), (1 << 20, 1 << 20)).cuda()
assert torch.cuda.memory_allocated() - before <= 2048
