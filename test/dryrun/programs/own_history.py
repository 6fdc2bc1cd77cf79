"""A program that records a history of its own gets what it asked for; the dry run's goes on."""
import os
import pickle
import tempfile

import torch
from torch.cuda.memory import _dump_snapshot, _record_memory_history, _snapshot

model = torch.nn.Linear(4096, 4096).cuda()
assert not any(_snapshot()["device_traces"])  # nothing is recorded yet
_record_memory_history(max_entries=1000)
for _ in range(3):
    model(torch.randn(64, 4096, device="cuda")).sum().backward()
with tempfile.TemporaryDirectory() as folder:
    _dump_snapshot(os.path.join(folder, "own.pickle"))
    with open(os.path.join(folder, "own.pickle"), "rb") as file:
        trace = pickle.load(file)["device_traces"][0]
# not the model, which came before
assert sum(event["action"] == "alloc" and event["size"] >= 4096 * 4096 * 4 for event in trace) == 3
assert any(event.get("frames") for event in trace)
_record_memory_history(enabled=None)
assert not any(_snapshot()["device_traces"])
_record_memory_history(context=None, max_entries=4)
kept = [torch.zeros(1000, device="cuda") for _ in range(9)]
trace = _snapshot()["device_traces"][0]
assert len(trace) == 4 and not any(event.get("frames") for event in trace)
_record_memory_history(enabled="state")
assert not any(_snapshot()["device_traces"])
_record_memory_history(enabled=None)
model(torch.randn(6400, 4096, device="cuda")).sum().backward()
