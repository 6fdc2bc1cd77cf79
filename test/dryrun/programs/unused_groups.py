"""Groups that are made at once, of which two are used: the others take no memory of the card.

options: --world-size 8 --rank 7
"""
import torch
import torch.distributed as dist

MIB = 1 << 20
torch.cuda.set_device(0)
dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
value = torch.ones(1, device="cuda")


def taken(call):
    before = torch.cuda.mem_get_info()[0]
    result = call()
    return (before - torch.cuda.mem_get_info()[0]) // MIB, result


bytes_made, groups = taken(lambda: [dist.new_group(list(range(8))) for _ in range(6)])
assert bytes_made == 0, bytes_made
bytes_made, pair = taken(lambda: dist.new_group([6, 7]))
assert bytes_made == 0, bytes_made
bytes_made, alone = taken(lambda: [dist.new_group([rank]) for rank in range(8)])
assert bytes_made == 0, bytes_made
first, _ = taken(lambda: dist.all_reduce(value, group=groups[0]))
again, _ = taken(lambda: dist.all_gather([torch.ones(1, device="cuda") for _ in range(8)], value,
                                         group=groups[0]))
of_two, _ = taken(lambda: dist.broadcast(value, 6, group=pair))
of_one, _ = taken(lambda: dist.all_reduce(value, group=alone[7]))
assert (first, again, of_two, of_one) == (618, 0, 474, 0), (first, again, of_two, of_one)
before = torch.cuda.mem_get_info()[0]
dist.destroy_process_group(groups[0])
assert torch.cuda.mem_get_info()[0] - before == 618 * MIB
dist.destroy_process_group()
