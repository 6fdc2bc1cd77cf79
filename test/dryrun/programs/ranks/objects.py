"""Objects that ranks give each other: by all, from one, to one, each its own.

gpus: 2
needs: numpy
"""
import os
import tempfile

import torch
import torch.distributed as dist


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    got = [{"rank": rank}, "x" * (rank + 3)]
    dist.broadcast_object_list(got, 1)
    assert got == [{"rank": 1}, "xxxx"], got
    got = [None, None]
    dist.all_gather_object(got, {"rank": rank, "text": "y" * rank * 50})
    assert [each["rank"] for each in got] == [0, 1] and len(got[1]["text"]) == 50
    got = [None, None] if rank == 0 else None
    dist.gather_object(rank, got)
    assert rank == 1 or got == [0, 1]
    got = [None]
    dist.scatter_object_list(got, ["a", "bb"] if rank == 0 else None)
    assert got == [["a", "bb"][rank]], got
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
