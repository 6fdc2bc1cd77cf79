#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the snapshots that the cases of top and diff show: make_runs.py FOLDER.

One training step on two devices, twice: before a change of the program, and after it,
when its lines have moved, its folder is another one and the logits became float32. And a
file whose names are written against terminals and tables. And one that runs out of memory
twice: for want of a piece that is large enough, then for want of all there is. And one
without events, most of whose free bytes are a whole segment. And one that begins late, and
grows. And one that a pool of ours wrote.
"""
import functools
import pathlib
import pickle
import sys

MIB = 1 << 20
TORCH = "/site-packages/torch/"


@functools.cache  # as PyTorch does: a frame is one object
def frame(filename, line, name):
    return {"filename": filename, "line": line, "name": name}


def cpp(name):
    return frame("??", 0, name)


python = frame


class Device:
    def __init__(self, base):
        self.next, self.time, self.events, self.segments = base, 1000, [], []

    def event(self, action, addr, size, frames, stream=0):
        self.events.append({"action": action, "addr": addr, "size": size, "stream": stream,
                            "frames": frames, "time_us": self.time})
        self.time += 250

    def alloc(self, size, frames, stream=0, recorded=True):
        """A segment of its own for each, as sizes above 10 MiB get one."""
        addr, self.next = self.next, self.next + 1024 * MIB
        if recorded:
            self.event("segment_alloc", addr, size, frames, stream)
            self.event("alloc", addr, size, frames, stream)
        block = {"address": addr, "size": size, "requested_size": size,
                 "state": "active_allocated", "frames": frames if recorded else []}
        self.segments.append({
            "address": addr, "total_size": size, "stream": stream, "segment_type": "large",
            "allocated_size": size, "active_size": size, "requested_size": size,
            "segment_pool_id": [0, 0], "is_expandable": False, "blocks": [block],
            "frames": []})
        return self.segments[-1]

    def free(self, segment):
        block = segment["blocks"][0]
        for action in ("free_requested", "free_completed"):
            self.event(action, block["address"], block["size"], block["frames"])
        block.update(state="inactive", requested_size=0)
        segment.update(allocated_size=0, active_size=0, requested_size=0)

    def realloc(self, segment, size, frames):
        """Another block at the front of the segment, in place of its only one."""
        self.free(segment)
        self.event("alloc", segment["address"], size, frames)
        rest = segment["total_size"] - size
        segment["blocks"] = [
            {"address": segment["address"], "size": size, "requested_size": size,
             "state": "active_allocated", "frames": frames},
            {"address": segment["address"] + size, "size": rest, "requested_size": 0,
             "state": "inactive", "frames": []}]
        segment.update(allocated_size=size, active_size=size, requested_size=size)

    def oom(self, size, free, frames):
        self.events.append({"action": "oom", "size": size, "device_free": free, "stream": 0,
                            "frames": frames, "time_us": self.time})


class Program:
    """Where its code lies, and by how much its lines have moved."""

    def __init__(self, home, packages, moved):
        self.home, self.packages, self.moved = home, packages, moved

    def line(self, file, line, name):
        return python(f"{self.home}/{file}", line + self.moved, name)

    def step(self):
        return [self.line("train.py", 40, "step"), self.line("train.py", 60, "<module>")]

    def forward(self, file, line, operator):
        op = [cpp(f"at::native::{operator}_cuda(at::Tensor const&)"),
              cpp(f"at::_ops::{operator}::call(at::Tensor const&)"),
              cpp(f"torch::autograd::THPVariable_{operator}(_object*, _object*)")]
        module = python(self.packages + TORCH + "nn/modules/module.py", 1790, "_call_impl")
        return [*op, self.line(file, line, "forward"), module, *self.step()]

    def backward(self, node, operator):
        return [cpp(f"at::_ops::{operator}::call(at::Tensor const&)"),
                cpp(f"torch::autograd::generated::{node}::apply(std::vector<at::Tensor>&&)"),
                cpp("torch::autograd::Engine::thread_main()"), cpp("clone")]


def run(device, p, batch, logits, fails):
    device.alloc(200 * MIB, [], recorded=False)  # the weights
    kept = []
    for _ in range(3):
        kept.append(device.alloc(batch * 32 * MIB, p.forward("model/attention.py", 88, "bmm")))
        kept.append(device.alloc(batch * 16 * MIB, p.forward("model/mlp.py", 21, "gelu")))
        kept.append(device.alloc(batch * 20 * MIB, p.forward("model/mlp.py", 23, "mm")))
    loss = device.alloc(logits * MIB, p.forward("loss.py", 12, "log_softmax"), stream=7)
    gradient = p.backward("LogSoftmaxBackward0", "_log_softmax_backward_data")
    if fails:
        device.oom(logits * MIB, 30 * MIB, gradient)
    else:
        kept.append(device.alloc(logits * MIB, gradient))
    for segment in [*reversed(kept), loss]:
        device.free(segment)


def snapshot(p, batches, logits, fails, conf):
    devices = [Device((index + 1) << 40) for index in range(2)]
    for index, device in enumerate(devices):
        run(device, p, batches[index], logits, fails and index == 1)
    segments = [dict(segment, device=index)
                for index, device in enumerate(devices) for segment in device.segments]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": conf, "max_split_size": -1,
                "garbage_collection_threshold": 0.0, "expandable_segments": False,
                "roundup_power2_divisions": {}}
    return {"segments": segments, "device_traces": [d.events for d in devices],
            "allocator_settings": settings}


folder = pathlib.Path(sys.argv[1])
(folder / "before.pickle").write_bytes(pickle.dumps(snapshot(
    Program("/home/ada/project", "/home/ada/.venv/lib/python3.11", 0),
    batches=[1, 1], logits=96, fails=False, conf=""), protocol=4))
(folder / "after.pickle").write_bytes(pickle.dumps(snapshot(
    Program("/root/checkout", "/opt/conda/lib/python3.12", 7),
    batches=[1, 3], logits=192, fails=True, conf="garbage_collection_threshold:0.8"), protocol=4))

device, names = Device(1 << 40), ["\x1b[2J\x1b]0;title\x07\r\nforward", "f" * 5000, "\u202egnp.exe",
                                  "ends\0early", ""]
for index, name in enumerate(names):
    device.alloc((index + 2) * 10 * MIB, [frame("/p/" + "d" * 3000 + "/net.py", 7, name)])
(folder / "hostile.pickle").write_bytes(pickle.dumps(
    {"segments": [dict(segment, device=0) for segment in device.segments],
     "device_traces": [device.events]}, protocol=4))

device = Device(1 << 40)
first, second = [device.alloc(40 * MIB, [frame("serve.py", 20, "load")]) for _ in range(2)]
device.realloc(first, 24 * MIB, [frame("serve.py", 31, "prefill")])
device.realloc(second, 24 * MIB, [frame("serve.py", 31, "prefill")])
device.oom(30 * MIB, 20 * MIB, [frame("serve.py", 44, "decode")])
device.oom(500 * MIB, 20 * MIB, [frame("serve.py", 52, "retry")])
(folder / "two-failures.pickle").write_bytes(pickle.dumps(
    {"segments": [dict(segment, device=0) for segment in device.segments],
     "device_traces": [device.events]}, protocol=4))

device = Device(1 << 40)
device.free(device.alloc(600 * MIB, []))
device.realloc(device.alloc(400 * MIB, []), 300 * MIB, [frame("serve.py", 31, "prefill")])
(folder / "cache.pickle").write_bytes(pickle.dumps(
    {"segments": [dict(segment, device=0) for segment in device.segments],
     "device_traces": [[]]}, protocol=4))

device = Device(1 << 40)
device.alloc(200 * MIB, [], recorded=False)
device.free(device.alloc(20 * MIB, [], recorded=False))
device.events.clear()
for size in range(30, 70, 4):
    device.free(device.alloc(size * MIB, [frame("serve.py", 31, "prefill")]))
(folder / "warm.pickle").write_bytes(pickle.dumps(
    {"segments": [dict(segment, device=0) for segment in device.segments],
     "device_traces": [device.events]}, protocol=4))

device = Device(1 << 40)
device.alloc(20 * MIB, [frame("serve.py", 20, "load")])
(folder / "paged.pickle").write_bytes(pickle.dumps(
    {"segments": [dict(segment, device=0) for segment in device.segments],
     "device_traces": [device.events],
     "allocator_settings": {"drystone_placement": "paged",
                            "drystone_conf": "per_process_memory_fraction:0.5"}}, protocol=4))
