"""Small data that ranks give each other arrives: each rank sees what the others have.

gpus: 3
"""
import os
import tempfile

import torch
import torch.distributed as dist


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=3)
    give = lambda *numbers: torch.tensor(numbers).cuda()
    got = give(5, 6, rank)
    dist.broadcast(got, 2)
    assert got.tolist() == [5, 6, 2]
    if rank == 0:
        dist.send(give(8), 1)
    elif rank == 1:
        dist.recv(got[:1], 0)
        assert got.tolist() == [8, 6, 2]
    dist.all_gather_into_tensor(got, give(rank + 10))
    assert got.tolist() == [10, 11, 12]
    dist.all_to_all_single(got, give(*(10 * rank + to for to in range(3))))
    assert got.tolist() == [rank, 10 + rank, 20 + rank]
    takes = [1] * 3
    there = torch.zeros(sum(takes), dtype=torch.long, device="cuda")
    dist.all_to_all_single(there, give(rank, rank, rank), takes, takes)
    assert there.tolist() == [0, 1, 2]
    parts = [give(0) for _ in range(3)]
    dist.gather(give(rank), parts if rank == 0 else None)
    assert rank != 0 or [part.item() for part in parts] == [0, 1, 2]
    dist.scatter(got[:1], [give(i + 5) for i in range(3)] if rank == 0 else None)
    assert got[0].item() == rank + 5
    outer, inner = dist.new_group([0, 2]), dist.new_group([1])
    if rank != 1:
        dist.broadcast(got[:1], 2, group=outer)
        assert got[0].item() == 7
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, give(rank), (rank + 1) % 3),
                                        dist.P2POp(dist.irecv, got[:1], (rank - 1) % 3)]):
        work.wait()
    assert got[0].item() == (rank - 1) % 3
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=3)
