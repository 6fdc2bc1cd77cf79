# SPDX-License-Identifier: Apache-2.0
"""Computes small operations on the CPU, because device memory is memory of this process.

Each operation first runs as usual, and allocates its outputs, temporaries and workspaces. If all
its tensors are small, it then runs again on CPU tensors over the same memory. An
operation whose output's size depends on values runs only on the CPU, and a device tensor of that
size is allocated for the result; its native temporaries are missing.
"""
import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from _drystone_memory import VALUES_MAX, lie_over, note_written, write


def is_small(tensor):
    return tensor.numel() <= VALUES_MAX


def is_plain(tensor):
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and \
        tensor.layout == torch.strided and not tensor.is_quantized


# These find the positions of a mask internally, where the mode is not called.
PUTS = {torch.ops.aten.index_put, torch.ops.aten.index_put_, torch.ops.aten._index_put_impl_}


def move_to(device):
    """Return a function that copies a CPU tensor to the device."""
    def move(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        output = torch.empty(leaf.shape, dtype=leaf.dtype, device=device)
        write(output, leaf)
        return output
    return move


class Values(TorchDispatchMode):
    def __init__(self, note):
        super().__init__()
        self.note, self.refused = note, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        on_device = [t for t in tensors if t.is_cuda]
        eligible = all(is_plain(t) and is_small(t) for t in tensors) and \
            function not in self.refused
        tags = getattr(function, "tags", ())
        if eligible and on_device and torch.Tag.dynamic_output_shape in tags:
            return self.make(function, args, kwargs, on_device[0].device)
        if eligible and on_device and function.overloadpacket in PUTS:
            args = (args[0], self.find_places(args[1]), *args[2:])
        result = function(*args, **kwargs)
        if eligible and torch.Tag.inplace_view not in tags and not self.is_view(function):
            self.compute(function, args, kwargs, result)
        return result

    @staticmethod
    def is_view(function):
        return getattr(function, "is_view", False)

    def on_host(self, tree):
        def replace(leaf):
            if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                return lie_over(leaf)
            if isinstance(leaf, torch.device) and leaf.type == "cuda":
                return torch.device("cpu")
            return leaf
        return _pytree.tree_map(replace, tree)

    def make(self, function, args, kwargs, device):
        made = function(*self.on_host(args), **self.on_host(kwargs))
        return _pytree.tree_map(move_to(device), made)

    @staticmethod
    def find_places(indices):
        """Replace each mask in indices by the positions it selects."""
        places = []
        for index in indices:
            if isinstance(index, torch.Tensor) and index.is_cuda and index.dtype == torch.bool:
                found = lie_over(index).nonzero().unbind(1)
                places += [move_to(index.device)(one.contiguous()) for one in found]
            else:
                places.append(index)
        return places

    def compute(self, function, args, kwargs, result):
        outputs = [t for t in _pytree.tree_leaves(result)
                   if isinstance(t, torch.Tensor) and t.is_cuda]
        writes = outputs or function._schema.is_mutable  # _foreach_add_ returns nothing
        if not writes or not all(is_plain(t) and is_small(t) for t in outputs):
            return
        is_random = torch.Tag.nondeterministic_seeded in getattr(function, "tags", ())
        state = torch.get_rng_state() if is_random else None
        try:
            if function._schema.is_mutable:
                for leaf in _pytree.tree_leaves((args, kwargs)):
                    if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                        note_written(leaf)
            with torch.no_grad():
                done = function(*self.on_host(args), **self.on_host(kwargs))
                done = [t for t in _pytree.tree_leaves(done) if isinstance(t, torch.Tensor)]
                for output, number in zip(outputs, done):
                    write(output, number)
        except Exception as error:  # the CPU lacks some operations
            self.refused.add(function)
            self.note(f"--values: {function} stays zero: {str(error).splitlines()[0][:80]}")
        finally:
            if state is not None:
                torch.set_rng_state(state)


def switch_on(note):
    Values(note).__enter__()
