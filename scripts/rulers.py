"""What the rulers share: C files without their comments, their functions, and the ceilings.

A ruler measures the tree and holds each figure against scripts/ceilings, a line each:
RULER PLACE FIGURE. A figure above its ceiling is a failure, one without a ceiling must not
exceed the ruler's own target. `--lower` writes ceilings that have fallen; none is ever raised.
"""
import pathlib
import re
import sys

FILE = pathlib.Path(__file__).with_name("ceilings")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
HEAD = re.compile(r"^(?:\w[\w\s*]*?)??\b(\w+)\(")


def c_files(*folders):
    for folder in folders:
        yield from sorted(pathlib.Path(folder).rglob("*.[ch]"))


def code_of(text):
    """The text with comments blanked and strings emptied; every line stays on its line."""
    def blank(match):
        found = match[0]
        return found[0] * 2 if found[0] in "\"'" else "\n" * found.count("\n") + " "
    return COMMENT.sub(blank, text)


def layers(root):
    """{module: those it may include and call}, from src/layers, the lowest first."""
    allowed = {}
    for line in (root / "src/layers").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, below = line.split(":")
            allowed[module] = set(below.split())
            unknown = allowed[module] - allowed.keys()
            if unknown:
                sys.exit(f"src/layers: {module} names {unknown} before they exist")
    return allowed


class Function:
    def __init__(self, name, is_static, line, body):
        self.name, self.is_static, self.line, self.body = name, is_static, line, body


def functions(code):
    """By the project's format name and brackets stand in column one, below the type."""
    lines = code.splitlines()
    head = begin = None
    for number, line in enumerate(lines):
        if line == "{" and head is not None:
            begin = number
        elif line == "}" and begin is not None:
            name, at, is_static = head
            yield Function(name, is_static, begin + 1, lines[begin:number + 1])
            head = begin = None
        elif begin is None and HEAD.match(line) and not line.endswith(";"):
            before = re.split(r"[;}#]", "\n".join(lines[max(0, number - 3):number]))[-1]
            is_static = re.search(r"\bstatic\b", before + line.split("(")[0])
            head = HEAD.match(line)[1], number, is_static is not None


class Ceilings:
    def __init__(self, ruler):
        self.ruler, self.failed, self.fallen, self.held = ruler, 0, {}, set()
        self.known = {}
        for line in FILE.read_text().splitlines():
            words = line.split("#")[0].split()
            if words and words[0] == ruler:
                self.known[words[1]] = float(words[2])

    def hold(self, place, figure, target, why=""):
        """`figure` at `place` must not exceed its ceiling, nor `target` where it has none."""
        ceiling = max(self.known.get(place, target), target)
        self.held.add(place)
        if figure > ceiling:
            self.failed += 1
            print(f"{place}: {self.ruler} {figure:g}, the ceiling is {ceiling:g}{why}")
        elif place in self.known and figure < self.known[place]:
            self.fallen[place] = figure if figure > target else None

    def done(self):
        """The exit status; writes what has fallen if asked, and drops what met its target or
        is no more."""
        for place in self.known.keys() - self.held:
            self.fallen[place] = None
        if "--lower" in sys.argv and self.fallen:
            kept = []
            for line in FILE.read_text().splitlines():
                words = line.split("#")[0].split()
                if words[:1] == [self.ruler] and words[1] in self.fallen:
                    if self.fallen[words[1]] is None:
                        continue
                    line = f"{self.ruler} {words[1]} {self.fallen[words[1]]:g}"
                kept.append(line)
            FILE.write_text("\n".join(kept) + "\n")
        return 1 if self.failed else 0
