# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: a recording of the program's own, beside the dry run's.

PyTorch has one history, and the dry run needs all of it. So the program's calls of
_record_memory_history() only say what its own snapshots are to have: events since the call, the
last max_entries of them, frames where it asked for them. Events since the call begin behind
the last allocation before it. Frames are Python's; stacks="all" has none of C++ here.

No snapshot has frames of the hook, nor those of PyTorch's that the hook calls. So memory that
autograd asks for has no Python, as without a hook.

While PyTorch detects anomalies, it formats the stack for each node of the graph, and copies all
lines of it for each block of the backward pass: 45 % of a step of TRL's DPO, 4 GB of the host for
60 steps. So here it gets one line, and snapshots have the whole stack again.
"""
import importlib
import linecache
import os
import sys

ALLOCATIONS = ("alloc", "segment_alloc", "segment_map")
CONTEXTS = {None: (), "state": ("alloc",), "alloc": ALLOCATIONS}  # "all": every action


class Stacks:
    """Stacks of the forward pass, each with one text that stands for it."""

    def __init__(self):
        self.texts, self.whole = {}, {}  # stack -> text -> the texts of all lines, outermost first
        self.codes = set()  # ids are unique as long as these are alive
        try:
            traceback = importlib.import_module("torch.fx.traceback")
        except ImportError:
            return  # a release without it
        self.own = traceback.format_stack
        self.ask = getattr(traceback, "has_preserved_node_meta", bool)  # not in every release
        traceback.format_stack = self.format

    def format(self):
        if self.ask():
            return self.own()
        frame, places, codes = sys._getframe().f_back, [], []
        while frame:
            codes.append(frame.f_code)
            places.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        key = tuple(places)
        if not key:
            return []  # a thread of autograd's, for a second backward pass
        if key not in self.texts:
            self.codes.update(codes)
            self.add(key, sys._getframe().f_back)
        return [self.texts[key]]

    def add(self, key, frame):
        lines = []
        while frame:
            code, line = frame.f_code, frame.f_lineno
            source = linecache.getline(code.co_filename, line, frame.f_globals).strip()
            lines.append(f'  File "{code.co_filename}", line {line}, in {code.co_name}\n'
                         f"    {source}\n")
            frame = frame.f_back
        self.texts[key] = text = f"{lines[0]}    stack {len(self.texts)}\n"
        self.whole[text] = lines[::-1]


def hide_hook(found, stacks):
    """Take the hook's frames out of a snapshot's stacks, and make those of forward passes whole."""
    known = {}  # frame's id -> whether it is the hook's (1), or may be called by the hook (2)
    blocks = [block for segment in found["segments"] for block in segment["blocks"]]
    for one in [event for trace in found["device_traces"] for event in trace] + blocks:
        forward = one.get("forward_frames")
        if forward:
            one["forward_frames"] = stacks.whole.get(forward[0], forward)
        frames, kept, behind = one.get("frames") or [], [], False
        for frame in reversed(frames):
            kind = known.get(id(frame))
            if kind is None:
                file = os.path.basename(frame["filename"])
                kind = known[id(frame)] = 1 if file[:10] == "_drystone_" else \
                    2 * (file == "_ops.py")
            behind = kind == 1 or (behind and kind == 2)
            if not behind:
                kept.append(frame)
        if len(kept) < len(frames):
            one["frames"] = kept[::-1]


class History:
    def __init__(self, torch):
        self.torch, memory = torch, torch.cuda.memory
        self.start, self.take = memory._record_memory_history, memory._snapshot
        self.entries, self.begins, self.actions = None, {}, ()  # None: nothing is recorded
        self.is_ours = False  # the dry run's own snapshot has everything
        self.stacks = Stacks()
        memory._record_memory_history, memory._snapshot = self.record, self.snapshot

    def count_allocations(self, device):
        return self.torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)

    def record(self, enabled="all", context="all", stacks="all", max_entries=None, *_,
               clear_history=False, **older):
        """Begin or end the program's recording; older releases have other names."""
        wanted = older.get("trace_alloc_max_entries", max_entries)
        if isinstance(enabled, bool):
            enabled = "all" if enabled and older.get("trace_alloc_max_entries", 1) else None
            context = "all" if older.get("trace_alloc_record_context") else "state"
        if self.entries is None or clear_history:
            self.begins = {device: self.count_allocations(device)
                           for device in range(self.torch.cuda.device_count())}
        self.entries = None if enabled is None else 0 if enabled == "state" else wanted or 1 << 62
        self.actions = CONTEXTS.get(context)

    def cut(self, trace, device):
        """Return the program's part of a device's events."""
        left = self.count_allocations(device) - self.begins.get(device, 0)
        begin = len(trace)
        while begin > 0 and (left > 0 or trace[begin - 1]["action"] != "alloc"):
            begin -= 1
            left -= trace[begin]["action"] == "alloc"
        kept = trace[begin:][-self.entries:] if self.entries else []
        for event in kept:
            if self.actions is not None and event["action"] not in self.actions:
                event.pop("frames", None)
        return kept

    def snapshot(self, *more, **named):
        found = self.take(*more, **named)
        hide_hook(found, self.stacks)
        if not self.is_ours:
            found["device_traces"] = [self.cut(trace, device)
                                      for device, trace in enumerate(found["device_traces"])]
        return found
