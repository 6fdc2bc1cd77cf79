# SPDX-License-Identifier: Apache-2.0
"""What NCCL says of its own memory, ncclCommMemStats() of one rank: after init, and after a sum."""
import ctypes

import part

STATS = ("suspendable", "is_suspended", "persistent", "total")  # ncclCommMemStat_t
FLOAT, SUM = 7, 0
TOO_OLD = "has no ncclCommMemStats (2.29.7 is the first)"


def ask(nccl, comm):
    row, value = {}, ctypes.c_uint64()
    for number, name in enumerate(STATS):
        error = nccl.ncclCommMemStats(comm, number, ctypes.byref(value))
        row[name] = value.value if error == 0 else f"error {error}"
    return row


def main():
    part.begin(__doc__)
    import torch
    x = torch.ones(1 << 22, device="cuda").add_(1)
    nccl, version = part.library("libnccl.so.2"), ctypes.c_int()
    if nccl is None:
        part.skip("there is no libnccl.so.2")
    nccl.ncclGetVersion(ctypes.byref(version))
    if not hasattr(nccl, "ncclCommMemStats"):
        part.skip(f"libnccl {version.value} {TOO_OLD}")
    comm, before = ctypes.c_void_p(), part.used()
    assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) == 0, "ncclCommInitAll fails"
    part.put(version=version.value, after="init", device=part.used() - before, **ask(nccl, comm))
    error = nccl.ncclAllReduce(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(x.data_ptr()),
                               ctypes.c_size_t(x.numel()), FLOAT, SUM, comm,
                               ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    assert error == 0, f"ncclAllReduce fails with {error}"
    torch.cuda.synchronize()
    row = ask(nccl, comm)
    part.put(version=version.value, after="sum", device=part.used() - before, **row)
    nccl.ncclCommDestroy(comm)
    part.say(f"NCCL {version.value}: {row['total']} bytes, {row['persistent']} of them persistent")


main()
