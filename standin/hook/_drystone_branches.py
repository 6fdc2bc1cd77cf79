# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: tells whether a number of a line decides what the program does.

The line's statement is looked up in the program's source. A test decides if one of its sides does
more than to print, to raise, or to set plain variables that no further test of that kind reads.
Where the source is not known a comparison decides. A loop's test always does.
"""
import ast

from _drystone_rare import PRINTS
from _drystone_turns import parse

NUMBERS = {"float", "int", "item", "len", "round", "str"}
TESTS = ast.If, ast.While, ast.IfExp
ORDERS = {"max", "min", "nlargest", "nsmallest", "sort", "sorted"}
PAIRS = {"enumerate", "items", "zip"}
SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
PLAIN = bool, int, float, str, type(None)


def has_line(node, line):
    return hasattr(node, "lineno") and node.lineno <= line <= node.end_lineno


def find_statement(tree, line):
    """Return the If or While whose test has a line, else the innermost statement; and its scope."""
    found, scope = None, tree
    for node in ast.walk(tree):  # outer nodes come first
        if has_line(node, line):
            scope = node if isinstance(node, SCOPES) else scope
            if isinstance(node, (ast.If, ast.While)) and has_line(node.test, line):
                return node, scope
            found = node if isinstance(node, ast.stmt) else found
    return found, scope


def get_keys(node, context):
    """Return the names of variables and members in a node that are read, or written."""
    return {getattr(one, "id", None) or one.attr for one in ast.walk(node)
            if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, context)}


def get_name(call):
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def is_print(node, names=PRINTS):
    """Return whether a node calls nothing but prints."""
    return all(get_name(one) in names for one in ast.walk(node) if isinstance(one, ast.Call))


def orders_others(node):
    """Return whether a node is a call that puts other things than its numbers in an order."""
    return isinstance(node, ast.Call) and get_name(node) in ORDERS and \
        (any(one.arg == "key" for one in node.keywords) or
         any(isinstance(one, ast.Call) and get_name(one) in PAIRS for one in ast.walk(node)))


class Question:
    """A search from one line; `frame` has the variables, `scope` the statements that see them."""

    def __init__(self, frame, scope, tree):
        self.frame, self.scope, self.tree, self.seen = frame, scope, tree, set()

    def find_scope(self, node):
        """Return what sees the targets of an assignment: the whole file sees members."""
        is_member = any(isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
                        for one in ast.walk(node))
        return ast.walk(self.tree if is_member else self.scope)

    def is_number(self, node):
        """Return whether an expression is made of plain numbers and texts alone."""
        if isinstance(node, ast.Name):
            value = self.frame.f_locals.get(node.id, self.frame.f_globals.get(node.id))
            return isinstance(value, PLAIN)
        if isinstance(node, ast.Call):
            return get_name(node) in NUMBERS and is_print(node)
        known = ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, \
            ast.expr_context
        return isinstance(node, known) and all(map(self.is_number, ast.iter_child_nodes(node)))

    def is_plain(self, node):
        """Return whether a statement changes nothing that matters."""
        if isinstance(node, (ast.Pass, ast.Raise, ast.Assert)):
            return True
        if isinstance(node, ast.Expr):
            return is_print(node)
        if isinstance(node, ast.If):
            return is_print(node.test) and not self.splits(node)
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            return self.is_number(node.value) and not self.is_tested(node)
        return False

    def splits(self, test):
        """Return whether one side of a test does what matters."""
        if test in self.seen:
            return False
        self.seen.add(test)
        if isinstance(test, ast.IfExp):
            return not is_print(test)
        return isinstance(test, ast.While) or not all(map(self.is_plain, test.body + test.orelse))

    def is_tested(self, assignment):
        """Return whether a test that splits the program reads what was assigned."""
        keys = get_keys(assignment, ast.Store)
        return any(get_keys(node.test, ast.Load) & keys and self.splits(node)
                   for node in self.find_scope(assignment) if isinstance(node, TESTS))

    def is_used(self, assignment):
        """Return whether a statement other than a print reads what was assigned."""
        keys = get_keys(assignment, ast.Store)
        return any(get_keys(node, ast.Load) & keys and not is_print(node)
                   for node in self.find_scope(assignment)
                   if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.Return)))


def decides(frame, is_own, what):
    """Return whether an answer, or a number, that the frame's line gets decides anything.

    `what` is "compare" for an answer, "float" for a number that a test may read later, "int" for
    one that may be a size. `is_own` tells of a frame whether it is the program's.
    """
    tree = parse(frame.f_code.co_filename)
    found, scope = find_statement(tree, frame.f_lineno)
    if found is None:
        return what != "float"
    parts = list(ast.walk(found))
    if isinstance(found, (ast.If, ast.While)):
        return Question(frame, scope, tree).splits(found)
    if isinstance(found, ast.Assert):
        return False  # the program ends there if the answer is no
    if isinstance(found, ast.Return):
        above = frame.f_back
        return decides(above, is_own, what) if above and is_own(above) else what != "float"
    is_asked = any(isinstance(one, (ast.Compare, ast.BoolOp, ast.Not, *TESTS)) for one in parts)
    is_asked = is_asked or any(map(orders_others, parts))
    is_number = what == "float" or (what == "compare" and not is_asked)  # max() and sorted() ask
    if isinstance(found, ast.For) and all(map(Question(frame, scope, tree).is_plain, found.body)):
        return False
    if isinstance(found, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        question = Question(frame, scope, tree)
        picks = any(isinstance(one, ast.comprehension) and one.ifs for one in parts)
        return question.is_tested(found) or \
            not is_number and (picks or not is_print(found) or question.is_used(found))
    shows = PRINTS | PAIRS | ORDERS - {"sort"}
    return not is_number and not (isinstance(found, ast.Expr) and is_print(found, shows))
