# SPDX-License-Identifier: Apache-2.0
"""Every driver call of a small program fails once: PyTorch's errors, never memory without access.

    stress_faults.py LIBRARY     which was loaded first, see failing_driver.c

The program runs with its first call failing, then with its second, until it ends before a call has
failed; once for a full device, once for a fault that has no name. A tensor that it was given must
lie on memory that has access. After each run the allocator must serve a plain request. At the end
all memory must go back, but for what lies where giving it back itself failed.
"""
import ctypes
import gc
import sys

import torch

NEVER = 2**64 - 1
OUT_OF_MEMORY, UNKNOWN = 2, 999
GIVING_BACK = ("cuMemUnmap", "cuMemRelease", "cuMemAddressFree", "cuMemFree_v2")


def load(path):
    driver = ctypes.CDLL(path)
    driver.dry_failing_set.argtypes = [ctypes.c_uint64, ctypes.c_int]
    driver.dry_failing_count.restype = driver.dry_failing_accessible_bytes.restype = ctypes.c_uint64
    driver.dry_failing_is_accessible.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    driver.dry_failing_name.restype = ctypes.c_char_p
    return driver


def make(driver, size):
    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
    assert driver.dry_failing_is_accessible(tensor.data_ptr(), size), \
        f"a tensor of {size} bytes has no memory ({driver.dry_failing_name().decode()} failed)"
    return tensor


def use(driver, streams):
    """Requests of all kinds: sizes, streams, events, a private pool, and memory given back."""
    kept = [make(driver, size) for size in (100, 3 << 20, 30 << 20, 70 << 20)]
    with torch.cuda.stream(streams[0]):
        kept += [make(driver, size) for size in (5000, 25 << 20)]
    kept[1].record_stream(streams[0])
    kept[4].record_stream(streams[1])
    del kept[::2]
    with torch.cuda.stream(streams[1]):
        kept += [make(driver, size) for size in (50 << 20, 400, 13 << 20)]
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        kept.append(make(driver, 11 << 20))
    torch.cuda.empty_cache()
    kept.append(make(driver, 90 << 20))


def attempt(driver, streams, index, result):
    """The name of the call that failed, "" if there were fewer; and the error, or None."""
    driver.dry_failing_set(index, result)
    error = None
    try:
        use(driver, streams)
    except RuntimeError as caught:  # torch.OutOfMemoryError is one
        error = str(caught).splitlines()[0]
    name = driver.dry_failing_name().decode()
    driver.dry_failing_set(NEVER, 0)
    gc.collect()
    torch.cuda.synchronize()
    return name, error


def main():
    driver = load(sys.argv[1])
    tried, errors, lost = 0, 0, 0
    streams = [torch.cuda.Stream() for _ in range(2)]
    for result in (OUT_OF_MEMORY, UNKNOWN):
        index, name = 0, "none yet"
        while name:
            name, error = attempt(driver, streams, index, result)
            assert name or not error, error
            make(driver, 1000)
            tried, errors, index = tried + bool(name), errors + bool(error), index + 1
            lost += name in GIVING_BACK
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    left, reserved = driver.dry_failing_accessible_bytes(), torch.cuda.memory_reserved()
    print(f"{tried} calls failed, {errors} errors; {left} bytes left with access, {reserved} "
          f"reserved, after {lost} failures to give back", flush=True)
    assert tried > 20
    assert lost or left == reserved == 0


main()
