"""A capture that waits for its own stream is refused, as on a device, and work goes on."""
import torch

x = torch.ones(16, device="cuda")
assert not torch.cuda.is_current_stream_capturing()
graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        (x * 2).sum().item()
    raise AssertionError("a capture read a value")
except RuntimeError as error:
    assert "captur" in str(error), error
assert not torch.cuda.is_current_stream_capturing()
y = torch.tensor([3.0], device="cuda")
assert y.item() == 3
