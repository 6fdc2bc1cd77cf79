# SPDX-License-Identifier: Apache-2.0
"""What a context and the first uses of CUDA's libraries take, and what cuMemGetInfo misses of it.

NVML tells of the whole card, with the part that the driver keeps for itself, cuMemGetInfo of what
a program may have. Each stage is counted without what PyTorch's allocator has reserved.
"""
import ctypes

import part


class Memory(ctypes.Structure):
    """nvmlMemory_v2_t"""
    _fields_ = [("version", ctypes.c_uint), *((name, ctypes.c_ulonglong) for name in
                                              ("total", "reserved", "free", "used"))]


class OldMemory(ctypes.Structure):
    """nvmlMemory_t"""
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Card:
    """The first device, asked through the driver and NVML."""

    def __init__(self):
        self.cuda, self.nvml = part.library("libcuda.so.1"), part.library("libnvidia-ml.so.1")
        if self.cuda is None or self.nvml is None or self.nvml.nvmlInit_v2():
            part.skip("there is no NVML beside the driver")
        bus, device = ctypes.create_string_buffer(32), ctypes.c_int()
        self.handle, self.total = ctypes.c_void_p(), ctypes.c_size_t()
        must(self.cuda.cuInit(0), "cuInit")
        must(self.cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
        must(self.cuda.cuDeviceTotalMem_v2(ctypes.byref(self.total), device), "cuDeviceTotalMem")
        must(self.cuda.cuDeviceGetPCIBusId(bus, 32, device), "cuDeviceGetPCIBusId")
        must(self.nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self.handle)), "NVML")
        self.device = device

    def by_nvml(self):
        memory, old = Memory(version=ctypes.sizeof(Memory) | 2 << 24), OldMemory()
        second = getattr(self.nvml, "nvmlDeviceGetMemoryInfo_v2", None)
        if second is not None and not second(self.handle, ctypes.byref(memory)):
            return {"total": memory.total, "reserved": memory.reserved, "used": memory.used}
        must(self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(old)), "NVML's memory")
        return {"total": old.total, "reserved": None, "used": old.used}

    def by_driver(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        must(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
        return {"total": total.value, "used": total.value - free.value}


def must(error, what):
    assert error == 0, f"{what} fails with {error}"


def stages(card):
    """Yield the name of each stage when it is reached."""
    context = ctypes.c_void_p()
    yield "no context"
    must(card.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card.device), "a context")
    must(card.cuda.cuCtxPushCurrent_v2(context), "a context")
    yield "context"
    import torch
    x = torch.ones(512, 512, device="cuda")
    yield "first copy and fill"
    x.add_(1).sin_()
    torch.cuda.synchronize()
    yield "first kernels"
    for dtype in (torch.float32, torch.bfloat16):
        x.to(dtype) @ x.to(dtype)
        torch.cuda.synchronize()
        yield f"cuBLAS, {dtype}".replace("torch.", "")
        torch.nn.functional.conv2d(torch.ones(8, 64, 56, 56, device="cuda", dtype=dtype),
                                   torch.ones(64, 64, 3, 3, device="cuda", dtype=dtype))
        torch.cuda.synchronize()
        yield f"cuDNN, {dtype}".replace("torch.", "")


def reserved(name):
    if name in ("no context", "context"):
        return 0
    import torch
    return torch.cuda.memory_reserved()


def main():
    part.begin(__doc__)
    card, taken = Card(), {}
    for name in stages(card):
        row = {"stage": name, "nvml": card.by_nvml(), "device_total": card.total.value,
               "torch_reserved": reserved(name)}
        if name != "no context":
            row["driver"] = card.by_driver()
            taken[name] = row["driver"]["used"] - row["torch_reserved"]
            row["missed"] = row["nvml"]["used"] - row["driver"]["used"]
        part.put(**row)
    part.say(f"{taken['context'] / part.MIB:.0f} MiB, at the end "
             f"{list(taken.values())[-1] / part.MIB:.0f}; NVML tells "
             f"{row['missed'] / part.MIB:.0f} more")


main()
