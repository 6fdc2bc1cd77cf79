# SPDX-License-Identifier: Apache-2.0
"""Ends loops early whose turns repeat, so that a dry run reaches what follows them.

    loaders     an iterator of a DataLoader ends, and all that wrap one see the end of the data;
                not where next() asks it for a batch and nobody expects StopIteration
    other loops a jump from the loop's head to the statement behind the loop, as debuggers do

The first time that steps repeat, the innermost loop ends: it is an epoch. Each time that the same
steps repeat again, one more of the loops around them ends when its turn is over.
"""
import ast
import dis
import functools
import inspect
import linecache
import os
import sys
import threading
from collections import Counter

import _drystone_rare

# Epochs of the same steps that run where the loop over them has no way out: usually, and of a
# program that is slow.
CUTS_MAX = 10, 2
CALLERS = os.path.join("torch", "optim", "optimizer.py"), os.path.join("torch", "_tensor.py")
FIT = os.path.join("drystone", "fit", "")  # stands between the program and PyTorch
OPTIMIZED = 1  # CO_OPTIMIZED: a function, whose f_locals is a copy that keeps tensors alive
# ids of iterators: gave data since the last step; shall end; whose program knows of no end
live, over, endless = set(), set(), set()
_cuts = Counter()


# --- loaders --------------------------------------------------------------------------------


def wrap_loaders(module, judge):
    """End an iterator that is over. judge(kinds) tells whether turns without autograd repeat."""
    iterator = getattr(module, "_BaseDataLoaderIter", None)
    if iterator is None:
        return  # a release with other classes
    following, turns = iterator.__next__, {}

    def __next__(self):
        me = id(self)
        if self._num_yielded == 0:  # new, or begun again
            over.discard(me)
            turns.pop(me, None)
            endless.discard(me)
            if not expects_end(sys._getframe(1)):
                endless.add(me)
        if me in endless:
            return following(self)
        turns[me] = judge(turns.get(me))
        if me in over or turns[me] is None:
            live.discard(me)
            turns.pop(me, None)
            raise StopIteration
        batch = following(self)
        live.add(me)
        return batch

    iterator.__next__ = __next__


def expects_end(frame):
    """Tell whether somebody takes StopIteration as the end of the data that a frame asks for.

    An iterator around the loader passes the end on to whoever asks it. So does a generator without a
    loop around that ends with the data.
    """
    while frame.f_back and frame.f_code.co_flags & inspect.CO_GENERATOR and \
            not find_loops([frame]):
        frame = frame.f_back
    if not asks(frame):
        return True  # list(), a for loop and their kin know it
    if frame.f_back and frame.f_code.co_name == "__next__":
        return takes_end(frame) or expects_end(frame.f_back)
    while frame:
        code, last = frame.f_code.co_code, frame.f_lasti
        if last >= 0 and dis.opname[code[last]] in ("FOR_ITER", "SEND", "YIELD_FROM"):
            return True
        if takes_end(frame):
            return True
        frame = frame.f_back
    return False


def takes_end(frame):
    """Tell whether a frame is in a try statement that catches StopIteration, and keeps it."""
    return any(is_inside and one.type and "StopIteration" in ast.dump(one.type) and
               getattr(one.body[-1], "exc", one) is not None
               for body, index, is_inside in find_chain(frame)
               for one in getattr(body[index], "handlers", []))


def asks(frame):
    """Tell whether a frame's statement calls next()."""
    return any(is_next(node) for node in walk_statement(frame))


def is_next(node):
    return isinstance(node, ast.Call) and \
        (getattr(node.func, "id", "") == "next" and len(node.args) == 1 or
         getattr(node.func, "attr", "") == "__next__")


def walk_statement(frame):
    chain = find_chain(frame)
    return ast.walk(chain[-1][0][chain[-1][1]]) if chain else ()


def end_loaders():
    """End the loaders that fed the last step. Returns whether there are any."""
    over.update(live)
    live.clear()
    return bool(over)


# --- statements of a frame ------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def parse(file):
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def find_chain(frame):
    """Return [(body, index, whether the next is in its body)] of the statements that a frame is in.

    An empty list: there is no source.
    """
    code, chain, body = frame.f_code, [], parse(frame.f_code.co_filename).body
    name = "<module>"
    while body:
        index = next((i for i, one in enumerate(body)
                      if one.lineno <= frame.f_lineno <= one.end_lineno), None)
        if index is None:
            break
        node = body[index]
        parts = [node.body if hasattr(node, "body") else [],
                 *(getattr(node, part, []) for part in ("orelse", "finalbody")),
                 *(one.body for part in ("handlers", "cases") for one in getattr(node, part, []))]
        part = next((i for i, inner in enumerate(parts) if inner and inner[0].lineno <=
                     frame.f_lineno <= inner[-1].end_lineno), None)
        chain.append((body, index, part == 0))
        body = parts[part] if part is not None else None
        if body and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            chain, name = [], node.name
    return chain if name == code.co_name else []


def find_heads(loop):
    """Return the lines that begin a turn of a loop; none: they cannot be told from others."""
    if not isinstance(loop, ast.While):
        return {loop.lineno, loop.iter.lineno}
    if not isinstance(loop.test, ast.Constant):
        return {loop.lineno}
    return set() if hasattr(loop.body[0], "body") else {loop.body[0].lineno}


def is_plain(node):
    """Tell whether only the beginning of a statement is on its first line.

    A jump to a line goes to the instruction with the deepest stack; other lines mislead it.
    """
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return False
    return not hasattr(node, "decorator_list") and \
        (hasattr(node, "body") or node.lineno == node.end_lineno)


def find_way(chain):
    """Return the lines to jump to, one after the other, to leave a chain's last statement.

    None: there is no way. A first jump to a plain line leaves the loop, and a second cannot
    mistake the middle of a statement for its beginning.
    """
    while chain:
        body, index, is_inside = chain[-1]
        left = body[index].orelse if is_inside and \
            isinstance(body[index], _drystone_rare.LOOPS) else []
        if left or index + 1 < len(body):  # a loop that no break leaves goes on with its `else`
            after = left[0] if left else body[index + 1]
            via = next((one.lineno for one in body if is_plain(one)), None)
            return [after.lineno] if is_plain(after) else via and [via, after.lineno]
        chain = chain[:-1]
        parent = chain[-1][0][chain[-1][1]] if chain else None
        if isinstance(parent, (ast.With, ast.AsyncWith)):  # its line has its end, too
            return [parent.lineno] if parent.items[-1].context_expr.end_lineno == parent.lineno \
                else None
        if isinstance(parent, ast.Try) and (parent.orelse or parent.finalbody):
            after = (parent.orelse or parent.finalbody)[0]
            return [after.lineno] if chain[-1][2] and is_plain(after) else None
    return None


def is_last(chain):
    """Tell whether nothing stands behind a chain's statements but the next turn of a loop."""
    return all(index + 1 == len(body) for body, index, _ in chain)


def find_frames():
    """Return the frames from the program's call of an optimizer or backward() to its first line."""
    frame, frames = sys._getframe(1), []
    while frame:
        name = frame.f_code.co_filename
        if frames or not (os.path.basename(name).startswith("_drystone") or
                          name.endswith(CALLERS) or FIT in name):
            frames.append(frame)
        frame = frame.f_back
    return [one for one in frames if not one.f_code.co_filename.startswith("<frozen")]


@functools.lru_cache(maxsize=None)
def is_installed(file):
    """Tell whether a file lies where packages are installed, by the record that installers leave."""
    folder = max((one for one in sys.path if one and file.startswith(os.path.join(one, ""))),
                 key=len, default=None)
    try:
        return folder is not None and any(one.endswith(".dist-info") for one in os.listdir(folder))
    except OSError:
        return False  # the program removed the folder, as PyTorch 2.6 does with its own


def find_loops(frames):
    """Return (frame, loop, its chain) of each loop around a step, the innermost first.

    A library's loop around those of the program is none of its own: it calls the program.
    """
    loops = []
    for frame in frames:
        chain = find_chain(frame)
        for i in reversed(range(len(chain))):
            body, index, is_inside = chain[i]
            if is_inside and isinstance(body[index], _drystone_rare.LOOPS):
                loops.append((frame, body[index], chain[:i + 1]))
    own = [i for i, loop in enumerate(loops, 1) if not is_installed(loop[0].f_code.co_filename)]
    return loops[:own[-1]] if own else loops


def find_rest(frames, loops):
    """Return "FILE:LINE" behind which the program has more to do; None: it has not.

    A library around all loops, which reads the command line or has a trainer, is passed over.
    """
    within = frames.index(loops[-1][0]) + 1 if loops else len(frames)
    for i, frame in enumerate(frames):
        if i >= within and is_installed(frame.f_code.co_filename):
            continue
        chain = loops[0][2] if loops and loops[0][0] is frame else find_chain(frame)
        if not chain or not is_last(chain):
            return name_line(frame.f_code, chain[-1][0][chain[-1][1]].lineno if chain
                             else frame.f_lineno)
    return None


def name_line(code, line):
    return f"{os.path.basename(code.co_filename)}:{line}"


# --- jumps ----------------------------------------------------------------------------------


class Jumper:
    """Waits for heads of loops in frames, and jumps there. Frames that end are forgotten."""

    def __init__(self):
        self.waiting, self.left = {}, None

    def wait(self, frame, loop, chain, allows=lambda: True):
        """Ask for a jump out of a loop at its next head, if allows() then. Returns whether there
        is a way."""
        heads, way = find_heads(loop), find_way(chain)
        if not heads or not way or sys.gettrace() not in (None, self.on_call):
            return False
        self.waiting.setdefault(frame, {})[frozenset(heads)] = way, allows
        frame.f_trace = self.on_line
        sys.settrace(self.on_call)
        return True

    def on_call(self, frame, event, arg):
        if self.left is not None and frame is not self.left:
            if sys.version_info < (3, 13) and self.left.f_code.co_flags & OPTIMIZED:
                self.left.f_locals.clear()  # the copy that tracing made
            self.left = None
        if not self.waiting and self.left is None:
            sys.settrace(None)

    def on_line(self, frame, event, arg):
        jumps = self.waiting.get(frame, {})
        heads = next((h for h in jumps if event == "line" and frame.f_lineno in h), None)
        if heads:
            way, allows = jumps.pop(heads)
            try:
                for line in way if allows() else ():
                    frame.f_lineno = line
            except ValueError:
                pass  # the loop goes on; the next repeat ends the program
            self.left = frame
        if event == "return" or not jumps:
            self.waiting.pop(frame, None)
            return None
        return self.on_line


_jumper = Jumper()


def wait(which, allows):
    return _jumper.wait(*which, allows)


def cut(kinds, step_count, is_slow=False):
    """End the loops around a step whose kinds repeat.

    Returns (whether the program goes on, how often these steps were cut, what is not seen).
    """
    frames = find_frames()
    loops = find_loops(frames)
    where = (loops[0][0].f_code, loops[0][1].lineno) if loops else None
    key = (where, tuple(sorted(tuple(kind[:2]) for kind in kinds)))
    _cuts[key] += 1
    times = _cuts[key]
    rare = _drystone_rare.find(loops[:times], step_count, name_line)
    has_loader, goes_on = end_loaders(), False
    if threading.current_thread() is threading.main_thread() and times <= CUTS_MAX[is_slow]:
        jumped = [_jumper.wait(*one) for one in loops[has_loader and times == 1:times]]
        goes_on = any(jumped) or has_loader
    if goes_on:
        return True, times, rare
    loops = loops[times > 1 and len(loops) > 1:]  # the last epoch ran what follows the innermost
    rest = find_rest(frames[frames.index(loops[0][0]) if loops else 0:], loops)
    return False, times, rare or (rest and f"what follows {rest} was not run")
