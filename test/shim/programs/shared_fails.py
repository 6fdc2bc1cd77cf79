# SPDX-License-Identifier: Apache-2.0
"""A tensor of another process that cannot be opened: words say what failed, where and why."""
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch


def failure(handle, device):
    try:
        torch.UntypedStorage._new_shared_cuda(device, handle, 4, 0, b"nobody", 0, b"", False)
    except RuntimeError as why:
        return str(why).splitlines()[0]
    raise AssertionError("a handle of nobody was opened")


PAGE = 2 << 20
torch.cuda.init()
nothing = os.open("/dev/null", os.O_RDONLY)  # no page of any driver's
begin = b"DRYIPC01" + struct.pack("i4x", os.getpid())
name = b"?" * 64
for device in (0, 1):
    where = f"drystone: opening a tensor of another process on cuda:{device}: "
    text = failure(begin + struct.pack("4Q", 0, PAGE, PAGE, 1) + name + struct.pack("i", nothing),
                   device)
    assert text.startswith(f"{where}the operating system or the driver refuses (the driver's last "
                           "error: "), text
    text = failure(begin + struct.pack("4Q", 0, PAGE, 0, 0) + name, device)  # a dry run has no such
    assert text == f"{where}this device, driver or process cannot do it", text
assert "enable it in both" in failure(b"?" * 66, 0)
torch.empty(1, device="cuda")
support.passed()
