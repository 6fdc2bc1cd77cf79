"""Rank 0 of 2, alone, with stages 0 and 2 of a pipeline of 4, which ask other ranks for shapes.

options: --world-size 2
unseen: None
"""
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

dist.init_process_group("nccl")
device = torch.device("cuda", 0)
parts = [torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU()).cuda() for _ in range(2)]
stages = [PipelineStage(part, index, 4, device) for part, index in zip(parts, (0, 2))]
schedule = ScheduleInterleaved1F1B(stages, n_microbatches=4, loss_fn=lambda y, wanted: y.sum())
optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in parts]
for _ in range(8):
    schedule.step(torch.zeros(32, 128, device=device))
    assert parts[1][0].weight.grad.shape == (128, 128)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
got = [None]
try:  # nothing tells what it would be
    dist.recv_object_list([None, None], 1)
    raise SystemExit("objects of nobody came")
except RuntimeError as error:
    assert "rank 1 is not there" in str(error), error
dist.send_object_list([{"text": "y" * 9}], 1)
dist.recv_object_list(got, 1)
assert got == [{"text": "y" * 9}]
