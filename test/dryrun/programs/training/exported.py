"""A model that torch.export took out of Python, run for several sizes of a batch."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64))
        self.head = nn.Linear(64, 8)

    def forward(self, x):
        return self.head(self.body(x) + x.mean(1, keepdim=True))


model = Model().cuda().eval()
x = torch.zeros(4, 32, device="cuda")
batch = torch.export.Dim("batch", min=2, max=64)
program = torch.export.export(model, (x,), dynamic_shapes={"x": {0: batch}})
assert any("linear" in str(node.target) for node in program.graph.nodes)
run = program.module()
with torch.no_grad():
    for size in (2, 8, 64):
        assert run(torch.zeros(size, 32, device="cuda")).shape == (size, 8)
assert {name for name, _ in run.named_parameters()} == {name for name, _ in model.named_parameters()}
