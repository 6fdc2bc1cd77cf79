# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: steps of a program that updates its weights by hand.

Such a program makes no optimizer. So a step ends where a backward pass begins and a leaf of its
graph was updated since the pass before: it is another tensor, or its version or that of its
gradient is another, or it has no gradient. Gradients that only add up end no step. A leaf may
also be a whole weight that a wrapper keeps for one pass (FSDP), so that a program with an
optimizer makes no step by hand.
"""
import functools
import weakref


def find_leaf(tensors):
    """Return the leaf at the end of the first path through a graph; None: there is none."""
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    node = next((one.grad_fn for one in tensors if getattr(one, "grad_fn", None)), None)
    while node is not None and type(node).__name__ != "AccumulateGrad":
        node = next((one for one, _ in node.next_functions if one is not None), None)
    return None if node is None else node.variable


class ByHand:
    def __init__(self, torch, on_step):
        self.last, self.on_step, self.has_optimizer = None, on_step, False
        backward, kind = torch.autograd.backward, torch.optim.Optimizer
        initialize = kind.__init__

        @functools.wraps(initialize)
        def __init__(optimizer, *given, **named):
            self.has_optimizer = True
            initialize(optimizer, *given, **named)

        kind.__init__ = __init__

        @functools.wraps(backward)
        def run(tensors, *more, **named):
            leaf = find_leaf(tensors)
            self.begin(leaf)
            result = backward(tensors, *more, **named)
            self.end(leaf)
            return result

        torch.autograd.backward = run

    def begin(self, leaf):
        if self.last is not None and leaf is not None and not self.has_optimizer:
            reference, version, of_gradient = self.last
            is_same = reference() is leaf and leaf._version == version and \
                leaf.grad is not None and leaf.grad._version == of_gradient
            if not is_same:
                self.on_step()

    def end(self, leaf):
        if leaf is not None:
            gradient = leaf.grad
            self.last = (weakref.ref(leaf), leaf._version,
                         None if gradient is None else gradient._version)
