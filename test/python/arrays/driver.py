# SPDX-License-Identifier: Apache-2.0
"""The driver that watches its caller: $DRY_TEST_CUDA, see standin/strict/stand_in.h."""
import ctypes
import os
import sys

import here

_VOID_P = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Control(ctypes.Structure):
    _fields_ = [("reset", _VOID_P),
                ("fail_at", ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int)),
                ("break_down", ctypes.CFUNCTYPE(None, ctypes.c_int)),
                ("hold", _VOID_P), ("complete", _VOID_P),
                ("capture", ctypes.CFUNCTYPE(None, ctypes.c_bool)), ("get_account", _VOID_P),
                ("last_misuse", ctypes.CFUNCTYPE(ctypes.c_char_p))]


PATH = os.environ.get("DRY_TEST_CUDA")
if not PATH:
    print("SKIPPED: no driver that watches its caller in DRY_TEST_CUDA")
    sys.exit(here.SKIPPED)
library = ctypes.CDLL(PATH)
library.stand_in_control.restype = ctypes.POINTER(_Control)
control = library.stand_in_control().contents


def make_stream():
    """Return a CUstream as a number. A context must be current: a pool's alone is not."""
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    library.cuInit(0)
    library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    library.cuCtxPushCurrent_v2(context)
    assert library.cuStreamCreate(ctypes.byref(stream), 1) == 0
    return stream.value


def misuse():
    """Return what the pool did that no correct program does; "": nothing."""
    return control.last_misuse().decode()
