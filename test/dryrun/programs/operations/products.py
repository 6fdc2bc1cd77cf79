"""Products by many names: einsum, batched, added, chained, Kronecker; workspaces are counted."""
import torch

a, b = torch.zeros(4, 16, 32, device="cuda"), torch.zeros(4, 32, 8, device="cuda")
assert torch.cuda.memory_allocated() == 4 * (4 * 16 * 32 + 4 * 32 * 8)
assert torch.bmm(a, b).shape == (4, 16, 8)
assert torch.cuda.max_memory_allocated() > 8 << 20  # PyTorch gives cuBLAS a workspace at its first product
assert torch.einsum("bij,bjk->bik", a, b).shape == (4, 16, 8)
assert torch.einsum("bij,bjk,bkl->il", a, b, torch.zeros(4, 8, 5, device="cuda")).shape == (16, 5)
assert torch.baddbmm(torch.zeros(4, 16, 8, device="cuda"), a, b, beta=0.5).shape == (4, 16, 8)
assert torch.tensordot(a, b, dims=([0, 2], [0, 1])).shape == (16, 8)
assert torch.linalg.multi_dot([a[0], b[0], torch.zeros(8, 3, device="cuda")]).shape == (16, 3)
assert torch.kron(a[0], b[0]).shape == (512, 256)
assert torch.addmv(torch.zeros(16, device="cuda"), a[0], torch.zeros(32, device="cuda")).shape == (16,)
assert torch.outer(a[0, 0], b[0, 0]).shape == (32, 8)
assert torch.dot(a[0, 0], a[0, 1]).shape == ()
assert torch.cdist(a, a).shape == (4, 16, 16)
for kind in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
    assert (a.to(kind) @ b.to(kind)).dtype == kind
assert torch.nn.functional.bilinear(a, a, torch.zeros(6, 32, 32, device="cuda")).shape == (4, 16, 6)
torch._C._cuda_clearCublasWorkspaces()
