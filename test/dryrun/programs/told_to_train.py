"""A rank that is not there says whether to train: what the others do is a guess.

options: --world-size 8 --rank 7
guesses: 13 item
"""
import torch
import torch.distributed as dist

torch.cuda.set_device(0)
dist.init_process_group("nccl")
flags = torch.tensor([0, 0, 0], device="cuda")
dist.broadcast(flags, 4, group=dist.new_group([4, 5, 6, 7]))
if flags[0].item():
    model = torch.nn.Linear(1024, 1024).cuda()
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
own = torch.tensor([1], device="cuda")
dist.broadcast(own, 7)
assert own.item()
