"""Decompositions and solvers, one matrix and many, real and complex."""
import torch

for kind in (torch.float32, torch.float64, torch.complex64):
    for shape in ((32, 32), (4, 16, 16), (3, 64, 64)):
        a = torch.zeros(shape, device="cuda", dtype=kind)
        b = torch.zeros(*shape[:-1], 5, device="cuda", dtype=kind)
        n = shape[-1]
        q, r = torch.linalg.qr(a)
        assert q.shape == r.shape == a.shape
        u, s, v = torch.linalg.svd(a, full_matrices=False)
        assert s.shape == a.shape[:-1] and not s.is_complex()
        values, vectors = torch.linalg.eigh(a)
        assert values.shape == (*shape[:-2], n) and vectors.shape == a.shape
        assert torch.linalg.cholesky_ex(a)[0].shape == a.shape
        assert torch.cholesky_solve(b, a).shape == b.shape
        factors, pivots = torch.linalg.lu_factor(a)
        assert pivots.shape == (*shape[:-2], n) and pivots.dtype == torch.int32
        assert torch.linalg.solve_ex(a, b)[0].shape == b.shape
        assert torch.linalg.solve_triangular(a, b, upper=True).shape == b.shape
        assert torch.linalg.inv_ex(a)[0].shape == a.shape
        assert torch.linalg.lstsq(a, b).solution.shape == b.shape
        assert torch.linalg.det(a).shape == shape[:-2]
a = torch.zeros(16, 16, device="cuda", requires_grad=True)
torch.linalg.qr(a + torch.eye(16).cuda())[1].sum().backward()
assert a.grad.shape == a.shape
assert torch.linalg.pinv(a.detach()).shape == (16, 16)
assert torch.linalg.matrix_norm(a, 2).shape == ()
assert torch.linalg.matrix_exp(a).shape == (16, 16)
for driver in (None, "gesvd", "gesvdj", "gesvda"):
    u, s, v = torch.linalg.svd(torch.zeros(2, 24, 12, device="cuda"), driver=driver,
                               full_matrices=False)
    assert u.shape == (2, 24, 12) and s.shape == (2, 12)
