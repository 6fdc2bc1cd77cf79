# SPDX-License-Identifier: Apache-2.0
"""Every call of the driver that fails is an error of PyTorch's or nothing at all, never a tensor
without memory. The driver is one that counts its calls and watches its caller.

needs: DRY_TEST_CUDA
"""
import ctypes
import gc
import os

from pinned_here import MIB, check, load_shim, pinned, pinned_clear, pinned_stats, raises, torch

CALLS, OUT_OF_MEMORY, UNKNOWN, NEVER = 60, 2, 999, 2 ** 64 - 1


class Control(ctypes.Structure):
    """The beginning of struct stand_in (standin/strict/stand_in.h)."""
    _fields_ = [("reset", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("fail_at", ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int)),
                ("break_down", ctypes.CFUNCTYPE(None, ctypes.c_int))]


library = os.environ["DRY_TEST_CUDA"]
driver = ctypes.CDLL(library)
driver.stand_in_control.restype = ctypes.POINTER(Control)
control = driver.stand_in_control().contents
control.reset(None)
device = torch.empty(MIB, dtype=torch.uint8, device="cuda")
shim = load_shim()
shim.dry_shim_enable_pinned.restype = ctypes.c_char_p
shim.dry_shim_enable_pinned.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int,
                                        ctypes.c_int, ctypes.c_char_p]


def enable():
    return shim.dry_shim_enable_pinned(b"mode:fit,arena_mb:2,threshold_kb:0", 0, 0, -1,
                                       library.encode())


# Opening: each call refused, once.
opened = 0
for call in range(CALLS):
    control.fail_at(call, UNKNOWN)
    said = enable()
    control.fail_at(NEVER, 0)
    if said is None:
        break
    assert said.startswith(b"drystone: no pinned memory: "), said
    opened += 1
assert said is None and 2 <= opened < CALLS, (opened, said)

refused = 0
for result in (OUT_OF_MEMORY, UNKNOWN):
    for call in range(CALLS):
        control.fail_at(call, result)
        try:
            tensor = pinned(3 * MIB)
            tensor.fill_(call % 251)
            device.copy_(tensor[:MIB], non_blocking=True)
            assert tensor[0] == tensor[-1] == call % 251
            del tensor
            pinned_clear()
        except RuntimeError as error:  # OutOfMemoryError is one
            assert "drystone: " in str(error), error
            refused += 1
        control.fail_at(NEVER, 0)
        gc.collect()
        check()
        tensor = pinned(3 * MIB)  # the next is served
        tensor.fill_(1)
        del tensor
assert refused > 0

# A driver that refuses everything, and then recovers.
for result, kind, text in ((OUT_OF_MEMORY, torch.cuda.OutOfMemoryError, "no room for 3145728"),
                           (UNKNOWN, RuntimeError, "the driver refused to pin memory")):
    pinned_clear()
    control.break_down(result)
    raises(kind, text, pinned, 3 * MIB)
    control.break_down(0)
    assert pinned(3 * MIB).fill_(9)[-1] == 9
pinned_clear()
stats = pinned_stats()
assert stats["active_bytes.current"] == stats["pending_bytes"], stats
check()
