# SPDX-License-Identifier: Apache-2.0
"""Finds what a loop does in rare turns only: each 500th, or the last.

A test that counts turns is read from the loop's source, and its numbers from the frame.
Nothing is called but len(), and functions of the program's own that ask their arguments alone. A
test that only prints is left out.
"""
import ast
import copy
import inspect
import sys

PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
         ast.expr_context, ast.Call)
EQUALS = (ast.Eq, ast.GtE, ast.Gt)
TURNS_MAX = 20000
OTHERWISE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.NotEq: ast.Eq}
LOOPS = (ast.For, ast.AsyncFor, ast.While)
# A log consists of these statements, functions and methods, which make no large tensor.
LOG = (*PLAIN, ast.Expr, ast.Assign, ast.AugAssign, ast.JoinedStr, ast.FormattedValue, ast.Tuple,
       ast.If, ast.IfExp, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.keyword,
       ast.Subscript, ast.Slice)
SIZES = {"len", "size", "numel", "shape"}
# Calls that leave the device's memory as it is.
PRINTS = {"abs", "add_scalar", "critical", "debug", "error", "float", "flush", "format", "getattr",
          "info", "int", "isinstance", "item", "join", "len", "log", "max", "min", "print", "repr",
          "round", "set_description", "set_postfix", "set_postfix_str", "str", "time", "warn",
          "warning", "write"}
LOG_CALLS = PRINTS | SIZES | {"perf_counter", "exp", "sqrt", "get_last_lr"}


def read_names(frame):
    """Return a frame's variables, and keep no copy: it would keep tensors alive.

    Only a function's are a copy.
    """
    names = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED or sys.version_info >= (3, 13):
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
    """Return the names and attributes that count a loop's turns, as they are written."""
    targets = [loop.target] if hasattr(loop, "target") else []
    targets += [node.target for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
    parts = [one for target in targets for one in getattr(target, "elts", [target])]
    return {ast.unparse(one) for part in parts for one in getattr(part, "elts", [part])}


def get_called(part):
    """Return the name of a function or method that is called, or of an attribute."""
    part = part.func if isinstance(part, ast.Call) else part
    return getattr(part, "id", "") if isinstance(part, ast.Name) else getattr(part, "attr", "")


def is_log(body, names):
    """Tell whether statements only compute single numbers and print them: they need no memory."""
    parts = [part for one in body for part in ast.walk(one)]
    called = {part.func for part in parts if isinstance(part, ast.Call)}
    sizes = {inner for part in parts if isinstance(part, (ast.Call, ast.Attribute)) and
             get_called(part) in SIZES for inner in ast.walk(part)}
    for part in parts:
        if not isinstance(part, LOG):
            return False
        if part in called:
            if get_called(part) not in LOG_CALLS:
                return False
        elif part not in sizes and isinstance(part, (ast.Name, ast.Attribute)):
            try:
                value = eval(compile(ast.Expression(part), "", "eval"), names)  # noqa: S307
            except Exception:
                continue  # set here, or a part of what a call returns
            if getattr(value, "is_cuda", False) and value.numel() > 1:
                return False
    return True


def counts(test, counters):
    return any(ast.unparse(part) in counters for part in ast.walk(test)
               if isinstance(part, (ast.Name, ast.Attribute)))


def make_if(line, test, body, orelse=None):
    if not isinstance(body, list):  # an expression
        body, orelse = [ast.Expr(body)], [ast.Expr(orelse)] if orelse else []
    return ast.If(test, body, orelse or [], lineno=line)


def split(node):
    """Return what a node decides as `if` statements, one for each side that may come late."""
    if isinstance(node, ast.IfExp):
        node = make_if(node.lineno, node.test, node.body, node.orelse)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.BoolOp):  # due(turn) and save()
        test, *_, last = node.value.values
        sides = (last,) if isinstance(node.value.op, ast.And) else (ast.Constant(None), last)
        node = make_if(node.lineno, test, *sides)
    elif hasattr(node, "cases"):
        values = [(one, case) for case in node.cases for one in
                  getattr(case.pattern, "patterns", [case.pattern]) if hasattr(one, "value")]
        return [make_if(one.lineno, ast.Compare(node.subject, [ast.Eq()], [one.value]), case.body)
                for one, case in values]
    if not isinstance(node, ast.If):
        return []
    test = node.test
    other = OTHERWISE.get(type(test.ops[0])) if isinstance(test, ast.Compare) else None
    if not other or not node.orelse or len(test.ops) > 1:
        return [node]
    return [node, make_if(node.lineno, ast.Compare(test.left, [other()], test.comparators),
                          node.orelse, node.body)]


def find_tests(loop):
    """Return the tests in a loop, without those that count the turns of a loop in it."""
    inner = [part for part in ast.walk(loop) if isinstance(part, LOOPS) and part is not loop]
    counters = {name for one in inner for name in find_counters(one)}
    within = {part for one in inner for part in ast.walk(one)}
    return [test for node in ast.walk(loop) for test in split(node) if not
            (node in within and counts(test.test, counters))]


class Shift(ast.NodeTransformer):
    """Adds `by` to each counter."""

    def __init__(self, counters, names):
        self.counters, self.names = counters, names

    def visit(self, node):
        now = read_number(node, self.names) if isinstance(node, (ast.Name, ast.Attribute)) and \
            ast.unparse(node) in self.counters else None
        if now is None:
            return self.generic_visit(node)
        return ast.BinOp(ast.Constant(now), ast.Add(), ast.Name("by", ast.Load()))


def is_pure(call, names):
    """Tell whether a call is of a function of the program's own that asks its arguments alone."""
    name = getattr(call.func, "id", None)  # a method has none
    code = getattr(names.get(name), "__code__", None)
    is_own = code is not None and not code.co_names and not code.co_freevars
    return is_own or (name == "len" and name not in names)


def find_turns(test, names, counters, range_):
    """Return whether a test is true in a range of turns, 0 being this one; None: not known."""
    if not counts(test, counters):
        return None
    safe = (*PLAIN, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop)
    if not all(isinstance(part, safe) and (not isinstance(part, ast.Call) or is_pure(part, names))
               for part in ast.walk(test)):
        return None
    shifted = Shift(counters, names).visit(copy.deepcopy(ast.Expression(test)))
    code = compile(ast.fix_missing_locations(shifted), "", "eval")
    try:
        return any(eval(code, {**names, "by": by}) for by in range_)  # noqa: S307
    except Exception:
        return None


def is_unseen(test, names, counters, turns):
    """Tell whether a test is true in turns that did not come."""
    came = find_turns(test, names, counters, range(1 - min(turns, TURNS_MAX), 1))
    for node in ast.walk(test):
        is_compare = isinstance(node, ast.Compare) and len(node.ops) == 1
        left = node.left if is_compare else node
        right = read_number(node.comparators[0], names) if is_compare else 0
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            now, each = read_number(left.left, names), read_number(left.right, names)
            if now is not None and each and right is not None and each > turns:
                return (now - right) % each >= turns if came is None else not came
        elif is_compare and isinstance(node.ops[0], EQUALS) and right is not None and \
                counts(left, counters):
            now = read_number(left, names)
            if now is not None and right > now:
                return True
        elif isinstance(node, ast.Call) and counts(node, counters) and came is False:
            return bool(find_turns(test, names, counters, range(1, TURNS_MAX)))
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
        for node in find_tests(loop):
            if not isinstance(node.body[-1], (ast.Break, ast.Continue, ast.Return, ast.Raise)) \
                    and is_unseen(node.test, names, counters, turns) \
                    and not (is_log(node.body, names) and is_log(node.orelse, names)):
                return f"{name_line(frame.f_code, node.lineno)} waits for a later turn"
        turns = 2  # the loops around it made no more
    return None
