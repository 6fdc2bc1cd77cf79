"""A private pool beside the default one."""
import torch

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = torch.empty(8 << 20, device="cuda")
outside = torch.empty(8 << 20, device="cuda")
del inside
torch.cuda.empty_cache()
