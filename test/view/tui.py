#!/usr/bin/env python3
"""The terminal's view, driven in tmux as a person would: tui.py TOOL MAKE_CASES

Each state is read off the screen, at 80 by 24, at other sizes, without UTF-8, without colours,
and of a file whose names are hostile.
"""
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

from terminal import Terminal, skip_without_terminals


def cursor_of(screen):
    """The moment: how many events there were before it."""
    line = next(line for line in screen if "  reserved " in line)
    if line.startswith("before the first event "):
        return 0
    return int(re.search(r"event (\d+)", line)[1]) + line.startswith("after ")


def check_walk(folder, tool, path):
    with Terminal(folder, [tool, "view", "--terminal", path]) as t:
        screen = t.wait_for("  reserved ", "[?] keys", "1 owners")
        assert path.name in screen[0] and "out of memory" in screen[0]
        assert any("!" in line and "^" in line for line in screen)
        assert sum("mlp.py" in line for line in screen) == 2, screen
        first = cursor_of(screen)
        explained = subprocess.run([tool, "explain", path], capture_output=True, text=True)
        assert f"OUT OF MEMORY at event {first} " in explained.stdout, (first, explained.stdout)
        t.wait_for(f"out of memory at event {first}  ")
        t.press("]")
        t.wait_for(f"after event {first}  ")
        t.press("[", "[")
        t.wait_for(f"after event {first - 2}  ")
        t.press("2")
        screen = t.wait_for("hole ", "] ")
        t.press("3")
        t.wait_for("VERDICT", "reserved")
        t.press("?")
        t.wait_for("one column", "zoom at the cursor")
        t.press("1", "/", "g", "e", "l", "u", "Enter")
        screen = t.wait_for('with "gelu"', "mlp.py:30 gelu")
        assert not any("attention.py" in line for line in screen)
        t.press("Escape")
        t.wait_for("attention.py")
        t.press("e")
        t.wait_for("at the end of the file  ")
        t.press("Home")
        assert cursor_of(t.wait_for("before the first event  ")) == 0
        t.press("o")
        t.wait_for(f"out of memory at event {first}  ")
        t.press("+", "+", "+")
        t.press("Right")
        moved = cursor_of(t.wait_for("1 owners"))
        assert first <= moved
        t.press("q")
        t.wait_for("ended 0")


def check_sizes(folder, tool, path):
    with Terminal(folder, [tool, "view", "--terminal", path], 120, 40) as t:
        t.wait_for("1 owners", "q quit")
        for width, height in ((80, 24), (160, 50), (200, 50), (40, 12), (79, 23)):
            t.run("resize-window", "-x", str(width), "-y", str(height))
            screen = t.wait_for("1 owners", " event ")
            assert all(len(line) <= width for line in screen), (width, screen)
            owners = [line for line in screen if re.match(r" *[0-9.]+ [KMGT]?i?B +[0-9]+ x ", line)]
            assert owners and not any(" " * 16 in line.strip() for line in owners), (width, screen)
        t.press("q")
        t.wait_for("ended 0")


def check_plain(folder, tool, path):
    """Without UTF-8 and without colours, everything is ASCII."""
    with Terminal(folder, [tool, "view", "--terminal", path], term="vt100", lang="C") as t:
        screen = t.wait_for("1 owners", "##")
        assert all(line.isascii() for line in screen), screen
        t.press("q")
        t.wait_for("ended 0")


def check_hostile(folder, tool, path):
    """Names that are escapes or turn the direction of text are shown as marks."""
    snapshot = pickle.loads(path.read_bytes())
    for trace in snapshot["device_traces"]:
        for event in trace:
            for frame in event.get("frames", []):
                frame["filename"] = "/home/u/\x1b[2J\x1b]0;evil\x07\u202ecode\n\t.py"
    hostile = folder / "hostile.pickle"
    hostile.write_bytes(pickle.dumps(snapshot, protocol=4))
    with Terminal(folder, [tool, "view", "--terminal", hostile]) as t:
        screen = t.wait_for("1 owners", "evil", "q quit")
        assert "hostile.pickle" in screen[0]
        assert "\u202e" not in "".join(screen)
        t.press("q")
        t.wait_for("ended 0")


def check_refusals(tool, path):
    for words, status in ((["view", "--terminal"], 2), (["view", "--terminal", "-"], 2), (["view", "--terminal", path], 2),
                          (["view", "--terminal", path.parent / "absent"], 3), (["view"], 2),
                          (["view", "--terminal", path, "--port", "8000"], 2),
                          (["view", "--terminal", path, "-o", "x.html"], 2)):
        done = subprocess.run([tool, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        assert done.returncode == status, (words, done)


def main():
    tool, make_cases = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = folder / "cases"
        subprocess.run([make_cases, cases], check=True, stdout=subprocess.DEVNULL)
        path = cases / "capacity-caught.pickle"
        done = subprocess.run([tool, "view", "--terminal", path], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        if "this build has no terminal view" in done.stderr:
            print("SKIPPED: ncurses was not found: there is no terminal view to try")
            sys.exit(77)
        check_refusals(tool, path)
        skip_without_terminals()
        check_walk(folder, tool, path)
        check_sizes(folder, tool, path)
        check_plain(folder, tool, path)
        check_hostile(folder, tool, path)


main()
