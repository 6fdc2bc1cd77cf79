# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: which module owns what at the peak, by its path.

    weights     parameters and buffers
    gradients   .grad of the parameters
    optimizer   the optimizers' tensors of a parameter
    made        what its forward pass made and was not freed yet, without that of modules in it

A block that several weights share, as the flat buffers of engines, is split among them. Weights
that an optimizer has and no module, as masters of half ones, are those of "(no module)".

Global hooks of torch.nn tell which module runs; the stand-in keeps a label for each block that is
handed out. Weights, gradients and states are looked up by address when a step ends
and the peak has grown, for their blocks are older. At the end the history is walked once.

A module's path is that in the outermost module which was called first; a second such module
has its class in front. Other memory belongs to "(backward pass)" or "(no module)". A compiled
module runs no hooks: what it makes belongs to the module around it.
"""
import ctypes
import threading
import time
import weakref
from collections import defaultdict, deque, namedtuple

import torch
from torch.nn.modules import module as hooks

KINDS = ("weights", "gradients", "optimizer", "made")
WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
ROUNDED = 512  # bytes to which PyTorch rounds a request
# A tensor in a block: when it was there, in blocks until then, and where.
Place = namedtuple("Place", "when kind label offset")


class Owners:
    def __init__(self):
        library = ctypes.CDLL(None)
        self.set_label, self.count = library.drystone_standin_label, library.drystone_standin_births
        self.set_label.argtypes, self.set_label.restype = [ctypes.c_uint32], None
        self.count.argtypes, self.count.restype = [ctypes.c_int], ctypes.c_uint64
        self.read = library.drystone_standin_labels
        self.read.argtypes, self.read.restype = [ctypes.c_int], ctypes.POINTER(ctypes.c_uint32)
        self.paths = [""]  # by label
        self.labels = weakref.WeakKeyDictionary()  # of modules
        self.weights, self.local = [], threading.local()
        self.optimizers, self.peak = weakref.WeakSet(), 0
        self.calls = deque(maxlen=100)  # (time, label, blocks until then) by outermost module
        self.found = defaultdict(list)  # (device, address) -> [Place]
        self.on_call = None  # runs when an outermost module is called

    def watch(self, guard):
        """Install the hooks, which guard(function) keeps from failing the program.

        While a graph is made of a program they do nothing. Releases that do not tell get none.
        """
        if not hasattr(getattr(torch, "compiler", None), "is_compiling"):
            return
        go_in, go_out = guard(self.enter), guard(self.leave)

        def enter(module, inputs):
            if not torch.compiler.is_compiling():
                go_in(module)

        def leave(module, inputs, result):
            if not torch.compiler.is_compiling():
                go_out()

        hooks.register_module_forward_pre_hook(enter)
        hooks.register_module_forward_hook(leave, always_call=True)

    # --- modules ------------------------------------------------------------------------------

    def enter(self, module):
        running = self.local.__dict__.setdefault("running", [])
        if module not in self.labels:
            self.name(module, self.paths[running[-1]] if running else "")
        if not running:
            now = self.count(torch.cuda.current_device())
            self.calls.append((time.monotonic(), self.labels[module], now))
            if self.on_call:
                self.on_call()
        running.append(self.labels[module])
        self.set_label(running[-1])

    def leave(self):
        running = self.local.__dict__.get("running")
        if running:
            running.pop()
            self.set_label(running[-1] if running else 0)

    def name(self, root, parent):
        """Give labels to a module that no known one contains, and to all in it."""
        kind = type(root).__name__
        prefix = [parent, kind] if parent else [kind] * (len(self.paths) > 1)
        for name, module in root.named_modules():
            parts = prefix + [part for part in name.split(".") if part not in WRAPPERS and part]
            self.labels[module] = len(self.paths)
            self.paths.append(".".join(parts) or kind)
            for one in [*module._parameters.values(), *module._buffers.values()]:
                if one is not None:  # parameters() and buffers() may be a subclass's own
                    self.weights.append((weakref.ref(one), self.labels[module]))
        self.look_up()

    # --- tensors ------------------------------------------------------------------------------

    def look_up(self):
        """Note where weights, gradients and states lie now."""
        labels = {}
        for reference, label in self.weights:
            weight = reference()
            if weight is not None:
                label = labels.setdefault(id(weight), label)
                self.note(weight, "weights", label)
                if weight.requires_grad and weight.is_leaf:
                    self.note(weight.grad, "gradients", label)
        for optimizer in self.optimizers:
            for weight in (one for group in optimizer.param_groups for one in group["params"]):
                if id(weight) not in labels:
                    self.note(weight, "weights", 0)
                    self.note(weight.grad, "gradients", 0)
            for weight, state in optimizer.state.items():
                for one in state.values() if isinstance(state, dict) else ():
                    self.note(one, "optimizer", labels.get(id(weight), 0))

    def note(self, tensor, kind, label):
        tensor = getattr(tensor, "_local_tensor", tensor)  # a DTensor wraps it
        if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
            return
        try:
            device, address = tensor.get_device(), tensor.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # sparse, or without memory
            return
        offset = tensor.storage_offset() * tensor.element_size()
        self.found[device, address].append(Place(self.count(device), kind, label, offset))

    def look_at(self, peak, optimizer=None):
        """Look again if the peak is a new one; older places tell nothing about it."""
        if optimizer is not None:
            self.optimizers.add(optimizer)
        if peak > self.peak:
            self.peak = peak
            self.found.clear()
            self.look_up()

    # --- the end ------------------------------------------------------------------------------

    def get(self, trace, device):
        """Return the owners of a device's memory at its peak, or at its first OOM.

        None if no module ran.
        """
        if len(self.paths) == 1:
            return []
        count, labels = self.count(device), self.read(device)
        first = count - sum(event["action"] == "alloc" for event in trace)
        blocks, ends = find_alive(trace, max(first, 0))
        rows = defaultdict(lambda: dict.fromkeys(KINDS, 0))
        for address, (number, size, is_python) in blocks.items():
            end = ends.get(number, count)
            places = [one for one in self.found[device, address] if number < one.when <= end]
            made = labels[number] if number < count else 0
            for kind, label, part in split(places, size) if places else [("made", made, size)]:
                nobody = "(no module)" if is_python or kind != "made" else "(backward pass)"
                rows[self.paths[label] or nobody][kind] += part
        return [{"module": path, **row} for path, row in
                sorted(rows.items(), key=lambda one: -sum(one[1].values()))]


def split(places, size):
    """Return [(kind, label, bytes)] of a block; its gaps belong to the tensor before them."""
    first = {}
    for one in places:
        first.setdefault(one.offset, one)
    bounds = [0, *sorted(first)[1:], size]
    return [(first[offset].kind, first[offset].label, max(min(end, size) - begin, 0))
            for offset, begin, end in zip(sorted(first), bounds, bounds[1:])]


def find_alive(trace, born):
    """Return {address: (number, bytes, whether Python asked)} of the blocks that are alive at the
    peak or the first OOM, and {number: blocks until its free}; `born` blocks came before."""
    alive, blocks, ends = {}, {}, {}
    moment = find_moment(trace)
    for i, event in enumerate(trace):
        action, address = event["action"], event.get("addr")
        if action == "alloc":
            alive[address] = (born, round_up(event), bool(event.get("frames")))
            born += 1
        elif action == "free_completed" and address in alive:
            ends[alive.pop(address)[0]] = born
        if i == moment:
            blocks = dict(alive)
    return blocks, ends


def find_moment(trace):
    """Return the index of the first OOM, or of the request that makes the peak."""
    active, peak, moment = 0, 0, None
    sizes = {}
    for i, event in enumerate(trace):
        action, address = event["action"], event.get("addr")
        if action == "oom":
            return i
        if action == "alloc":
            sizes[address] = round_up(event)
            active += sizes[address]
        elif action == "free_completed":
            active -= sizes.pop(address, 0)
        if active > peak:
            peak, moment = active, i
    return moment


def round_up(event):
    return -(-event["size"] // ROUNDED) * ROUNDED
