"""Tensors given from hand to hand without a copy; what the host may not read is refused.

needs: numpy
"""
import torch
from torch.utils import dlpack

x = torch.arange(12.0).cuda()
y = dlpack.from_dlpack(dlpack.to_dlpack(x))
assert y.data_ptr() == x.data_ptr() and y.device == x.device
z = torch.from_dlpack(x)
assert z.data_ptr() == x.data_ptr() and z.tolist() == list(range(12))
face = x.__cuda_array_interface__
assert face["data"][0] == x.data_ptr() and face["shape"] == (12,)
try:
    x.numpy()
    raise AssertionError("memory of the device is not the host's")
except TypeError:
    pass
part = x.untyped_storage()
assert part.device.type == "cuda" and part.nbytes() == 48
assert torch.frombuffer(bytearray(x.cpu().numpy().tobytes()), dtype=torch.float32)[5] == 5
