"""Streams: priorities, waits, and blocks that belong to the stream they were made on.

rules: torch
"""
import torch

low, high = torch.cuda.Stream.priority_range()
assert low == 0 and high < low
urgent = torch.cuda.Stream(priority=high)
assert urgent.priority == high
assert torch.cuda.current_stream() == torch.cuda.default_stream()
with torch.cuda.stream(urgent):
    assert torch.cuda.current_stream() == urgent
    x = torch.empty(4 << 20, device="cuda")
place = x.data_ptr()
del x
y = torch.empty(4 << 20, device="cuda")
assert y.data_ptr() != place  # the free block is of another stream
with torch.cuda.stream(urgent):
    z = torch.empty(4 << 20, device="cuda")
assert z.data_ptr() == place
done = torch.cuda.Event()
urgent.record_event(done)
torch.cuda.current_stream().wait_event(done)
done.synchronize()
assert done.query() and urgent.query()
outside = torch.cuda.ExternalStream(urgent.cuda_stream)
with torch.cuda.stream(outside):
    assert torch.cuda.current_stream().cuda_stream == urgent.cuda_stream
assert len({torch.cuda.Stream().cuda_stream for _ in range(40)}) == 32
