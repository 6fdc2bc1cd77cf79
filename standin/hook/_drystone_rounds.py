# SPDX-License-Identifier: Apache-2.0
"""Ends a loop that trains nothing and has no loader early, as the 200 turns of an evaluation.

After each WINDOW calls of outermost modules without gradients it looks at what was requested
since the look before. Calls repeat if three looks found equally many blocks and bytes, and
nothing was left. The loop is then the innermost one whose counter went on by equally much from
look to look. It ends where gradients are off at its head, too. Loops that collect more than single
numbers, or that do something in rare turns only, go on: what follows them may depend on it.
"""
import ast
import threading

import _drystone_rare
import _drystone_turns

WINDOW = 24  # calls; the periods 1, 2, 3, 4, 6 and 8 divide it
KEEPS = {"append", "add", "extend", "insert", "put"}


def find_counter(frame, loop):
    """Return the whole number that a loop's target is, or begins with; None: there is none."""
    target = getattr(loop, "target", None)
    target = target.elts[0] if isinstance(target, ast.Tuple) else target
    value = _drystone_rare.read_names(frame).get(getattr(target, "id", None))
    return value if type(value) is int else None


def keeps(loop):
    """Tell whether a loop collects something else than single numbers."""
    for part in ast.walk(loop):
        if isinstance(part, ast.Call) and getattr(part.func, "attr", "") in KEEPS:
            if not any(getattr(one, "attr", "") == "item" for arg in part.args
                       for one in ast.walk(arg)):
                return True
        elif isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        elif isinstance(part, ast.AugAssign) and isinstance(part.value, (ast.List, ast.ListComp)):
            return True
    return False


class Rounds:
    def __init__(self, torch, measure):
        self.torch, self.measure, self.looks, self.calls = torch, measure, [], 0

    def forget(self):
        self.looks, self.calls = [], 0

    def note_call(self):
        """Note a call of an outermost module. Returns whether its loop will end."""
        if self.torch.is_grad_enabled() or \
                threading.current_thread() is not threading.main_thread():
            self.forget()
            return False
        self.calls += 1
        return self.calls % WINDOW == 1 and self.look()

    def look(self):
        loops = _drystone_turns.find_loops(_drystone_turns.find_frames())
        counters = {(frame.f_code, loop.lineno): find_counter(frame, loop)
                    for frame, loop, _ in reversed(loops)}
        self.looks = self.looks[-2:] + [(self.measure(), counters)]
        return len(self.looks) == 3 and self.repeat() and any(map(self.end, loops))

    def repeat(self):
        a, b, c = (sums for sums, _ in self.looks)
        steps = [[y - x for x, y in zip(*pair)][:4] for pair in ((a, b), (b, c))]
        return steps[0] == steps[1] and steps[0][0] > 0 and steps[0][2:] == [0, 0]

    def end(self, which):
        """Ask for the end of a loop, if its turns are what repeats. Returns whether it will end."""
        frame, loop, _ = which
        found = [counters.get((frame.f_code, loop.lineno)) for _, counters in self.looks]
        if None in found or not found[1] - found[0] == found[2] - found[1] > 0 or keeps(loop) or \
                _drystone_rare.find([which], found[2] - found[0], _drystone_turns.name_line):
            return False
        self.forget()
        return _drystone_turns.wait(which, lambda: not self.torch.is_grad_enabled())
