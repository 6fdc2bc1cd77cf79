"""Above a share of the memory, segments that nobody used lately are given back.

conf: garbage_collection_threshold:0.5
check: addresses
rules: torch
"""
import torch

# a snapshot does not say this share, so segments cannot be replayed
torch.cuda.set_per_process_memory_fraction(0.1)
MIB = 1 << 20
reserved = []
for i in range(12):
    x = torch.empty((200 + 100 * i) * MIB, dtype=torch.uint8, device="cuda")
    del x
    reserved.append(torch.cuda.memory_reserved())
limit = torch.cuda.mem_get_info()[1] // 10
assert sum((200 + 100 * i) * MIB for i in range(12)) > limit
assert any(later < earlier for earlier, later in zip(reserved, reserved[1:])), reserved
assert torch.cuda.memory_stats()["num_ooms"] == 0
