"""Models that TorchScript scripted and traced, run, saved and loaded again."""
import io
import warnings

import torch

warnings.simplefilter("ignore")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            x = torch.relu(self.layer(x)) + x
        return x


x = torch.zeros(16, 64, device="cuda")
model = torch.jit.script(Model().cuda())
for _ in range(3):
    y = model(x, 3)
assert y.shape == x.shape
y.sum().backward()
assert model.layer.weight.grad.shape == (64, 64)
file = io.BytesIO()
torch.jit.save(model, file)
file.seek(0)
again = torch.jit.load(file, map_location="cuda")
assert again.layer.weight.is_cuda and again(x, 1).shape == x.shape
traced = torch.jit.trace(torch.nn.Linear(64, 8).cuda(), x)
assert traced(x).shape == (16, 8)
assert torch.jit.freeze(model.eval())(x, 2).shape == x.shape
