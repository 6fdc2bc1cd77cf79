# SPDX-License-Identifier: Apache-2.0
"""The device, its driver and PyTorch, in one line of JSON; ends with 77 where there is no GPU."""
import ctypes
import importlib.util

import part


def driver():
    """The driver's version as text, by NVML."""
    nvml, text = part.library("libnvidia-ml.so.1"), ctypes.create_string_buffer(80)
    if nvml is None or nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, 80):
        return "unknown"
    return text.value.decode()


if not importlib.util.find_spec("torch"):
    part.skip("python3 finds no PyTorch")
import torch  # noqa: E402
if not torch.cuda.is_available():
    part.skip("there is no GPU that PyTorch can use")
part.put(device=torch.cuda.get_device_name(), driver=driver(), torch=torch.__version__,
         cuda=torch.version.cuda, has_torchvision=bool(importlib.util.find_spec("torchvision")))
