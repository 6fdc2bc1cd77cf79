# SPDX-License-Identifier: Apache-2.0
"""What the programs here share: torch, our pinned memory, the stand-in's setup, waits for frees."""
import ctypes
import gc
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402

from drystone.torch import _pinned, enable_pinned, pinned_clear, pinned_stats  # noqa: E402,F401
from drystone.torch._shim import load as load_shim  # noqa: E402

MIB = 1 << 20


def with_standin(word):
    """Run this program again with one more word of the stand-in's setup, once."""
    setup = os.environ["DRYSTONE_STANDIN"]
    if word not in setup.split(";"):
        os.environ["DRYSTONE_STANDIN"] = f"{setup};{word}"
        os.execv(sys.executable, [sys.executable, *sys.argv])


def check():
    """Walk the cache's invariants."""
    shim = load_shim()
    shim.dry_shim_pinned_check.restype = ctypes.c_char_p
    said = shim.dry_shim_pinned_check()
    assert said is None, said


def pinned(count, dtype=torch.uint8):
    return torch.empty(count, dtype=dtype, pin_memory=True)


def address_of_freed(use, count=MIB):
    """Allocate, let `use` do something with the tensor, free it; the address that it had."""
    tensor = pinned(count)
    address = tensor.data_ptr()
    use(tensor)
    del tensor
    gc.collect()
    return address


def comes_again(address, count=MIB):
    """Whether the address is handed out before all that is free is, and more has to be pinned."""
    held, arenas = [], pinned_stats()["num_host_alloc"]
    while pinned_stats()["num_host_alloc"] == arenas:
        held.append(pinned(count))
        if held[-1].data_ptr() <= address < held[-1].data_ptr() + count:
            return True
    return False


def raises(kind, text, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert text in str(error), f"{text!r} is not in {str(error)!r}"
        return
    raise AssertionError(f"no {kind.__name__} with {text!r}")
