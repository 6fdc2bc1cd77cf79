"""Every collective of a process group, alone, asynchronous, grouped; and a group split off.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    device = torch.device("cuda", rank)
    one, both = torch.zeros(64, device=device), torch.zeros(128, device=device)
    parts = [torch.zeros(64, device=device) for _ in range(2)]
    number = torch.tensor([3, 4]).cuda()
    dist.all_reduce(number, op=dist.ReduceOp.MAX)
    assert number.tolist() == [3, 4]
    dist.broadcast(number, 0)
    assert number.tolist() == [3, 4]
    dist.all_gather(parts, one)
    dist.all_gather_into_tensor(both, one)
    dist.reduce_scatter_tensor(one, both)
    dist.reduce_scatter(one, parts)
    dist.all_to_all_single(both, torch.zeros(128, device=device))
    dist.all_to_all(parts, [torch.zeros(64, device=device) for _ in range(2)])
    dist.reduce(one, 0)
    dist.gather(one, parts if rank == 0 else None, dst=0)
    dist.scatter(one, parts if rank == 0 else None, src=0)
    work = dist.all_reduce(both, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert work.is_completed()
    if rank == 0:
        dist.send(one, 1)
    else:
        dist.recv(one, 0)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, one, 1 - rank),
                                        dist.P2POp(dist.irecv, parts[0], 1 - rank)]):
        work.wait()
    dist.all_reduce_coalesced([one, both])
    alone = dist.new_group([rank], use_local_synchronization=True)
    dist.all_reduce(one, group=alone)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
