# SPDX-License-Identifier: Apache-2.0
"""Finds what a loop does in rare turns only: each 500th, or the last.

A test that counts turns is read from the loop's source, and its numbers from the frame.
Nothing is called but len().
"""
import ast
import sys

PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
         ast.expr_context, ast.Call)
EQUALS = (ast.Eq, ast.GtE, ast.Gt)


def read_names(frame):
    """Return a frame's variables, and keep no copy: it would keep tensors alive."""
    names = frame.f_locals
    if names is frame.f_globals or sys.version_info >= (3, 13):
        return {**frame.f_globals, **names}
    copy = {**frame.f_globals, **names}
    names.clear()
    return copy


def read_number(node, names):
    """Return the whole number that an expression has now; None: not known."""
    for part in ast.walk(node):
        if not isinstance(part, PLAIN) or \
                isinstance(part, ast.Call) and getattr(part.func, "id", "") != "len":
            return None
    try:
        number = eval(compile(ast.Expression(node), "", "eval"), names)  # noqa: S307
    except Exception:
        return None
    return number if type(number) is int else None


def find_counters(loop):
    """Return the names that count a loop's turns."""
    targets = [loop.target] if hasattr(loop, "target") else []
    targets += [node.target for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
    return {name.id for target in targets for name in ast.walk(target)
            if isinstance(name, ast.Name)}


def is_unseen(test, names, counters, turns):
    """Tell whether a test is true in turns that did not come."""
    for node in ast.walk(test):
        is_compare = isinstance(node, ast.Compare) and len(node.ops) == 1
        left = node.left if is_compare else node
        right = read_number(node.comparators[0], names) if is_compare else 0
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            now, each = read_number(left.left, names), read_number(left.right, names)
            if now is not None and each and right is not None and each > turns:
                return (now - right) % each >= turns
        elif is_compare and isinstance(node.ops[0], EQUALS) and right is not None and \
                any(isinstance(n, ast.Name) and n.id in counters for n in ast.walk(left)):
            now = read_number(left, names)
            if now is not None and right > now:
                return True
    return False


def find_evaluation(trainer, steps):
    """Name the evaluation that a Trainer of transformers makes after some steps; None: it came."""
    settings = getattr(trainer, "args", None)
    each = getattr(settings, "eval_steps", None)
    is_late = getattr(settings, "eval_strategy", "no") == "steps" and \
        isinstance(each, int) and each > steps
    return f"the evaluation of step {each}" if is_late else None


def find(loops, steps, name_line):
    """Return what the loops (frame, loop, chain) do in turns that did not come; None: nothing."""
    turns = steps  # the innermost loop made as many, at most
    for frame, loop, _ in loops:
        names, counters = read_names(frame), find_counters(loop)
        evaluation = find_evaluation(names.get("self"), steps)
        if evaluation:
            return f"{evaluation} waits for a later turn"
        for node in ast.walk(loop):
            if isinstance(node, ast.If) and not \
                    isinstance(node.body[-1], (ast.Break, ast.Continue, ast.Return, ast.Raise)) \
                    and is_unseen(node.test, names, counters, turns):
                return f"{name_line(frame.f_code, node.lineno)} waits for a later turn"
        turns = 2  # the loops around it made no more
    return None
