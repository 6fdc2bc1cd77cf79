"""Events that take the time, and what is refused of those that do not."""
import torch

begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
x = torch.randn(256, 256, device="cuda")
y = x @ x
end.record()
end.synchronize()
assert begin.query() and end.query()
assert 0 <= begin.elapsed_time(end) < 60_000
untimed = torch.cuda.Event()
untimed.record()
try:
    begin.elapsed_time(untimed)
    raise AssertionError("an event without a time has one")
except (RuntimeError, ValueError):
    pass
fresh = torch.cuda.Event(enable_timing=True)
assert fresh.query()  # never recorded: nothing to wait for
torch.cuda.synchronize()
assert torch.empty(1, device="cuda").item() == 0  # no error was left behind
