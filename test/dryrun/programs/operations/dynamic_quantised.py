"""A model quantised for the host beside the one on the device that it was made of."""
import copy
import warnings

import torch

warnings.simplefilter("ignore")
model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
quantised = copy.deepcopy(model)
try:
    quantised = torch.ao.quantization.quantize_dynamic(quantised, {torch.nn.Linear})
    assert quantised(torch.zeros(2, 128)).shape == (2, 10)
except (AttributeError, RuntimeError):
    pass  # taken out of later releases, or without an engine for this processor
model.cuda()
assert model(torch.zeros(2, 128, device="cuda")).shape == (2, 10)
weights = model[0].weight
scale = weights.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
whole = (weights / scale).round().to(torch.int8)
assert whole.dtype == torch.int8 and whole.untyped_storage().nbytes() == 128 * 128
y = torch._int_mm(torch.zeros(32, 128, dtype=torch.int8, device="cuda"), whole.t())
assert (y.float() * scale.t()).shape == (32, 128)
