#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rulers (scripts/check_*.py) measure small trees whose figures are known: rulers.py"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
failures = []


def function(name, *calls, lines=0, decisions=0):
    body = [f"    dryi_{call}();" for call in calls] + ["    ;"] * lines
    body += ["    if (x && y)"] * (decisions // 2)
    return "void\ndryi_" + name + "(void)\n{\n" + "\n".join(body) + "\n}\n"


def ring(folder, count):
    """Files of a folder, each of which calls the next and the last one the first."""
    return {f"src/{folder}/{folder}_{i}.c":
            function(f"{folder}_{i}", f"{folder}_{(i + 1) % count}") for i in range(count)}


def measure(ruler, files, ceilings="", *words, layers="a:\nb: a\n"):
    """(exit status, what it prints, the ceilings afterwards) of a ruler on such a tree."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        shutil.copytree(SCRIPTS, root / "scripts")
        (root / "scripts/ceilings").write_text(ceilings)
        for path, text in {"src/layers": layers, "ARCHITECTURE.md": "short",
                           "include/drystone/drystone.h": "", "tool/main.c": "",
                           **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        done = subprocess.run([sys.executable, root / f"scripts/check_{ruler}.py", root, *words],
                              capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr
        return done.returncode, printed, (root / "scripts/ceilings").read_text()


def expect(what, result, status, *parts):
    if result[0] != status or any(part not in result[1] + result[2] for part in parts):
        failures.append(f"{what}: {result}")


COMMENTS = "".join(f"/* Frees block {i} of the pool. */\n" for i in range(28))
INVERTED = COMMENTS + "/* Of those it is one. */\n" * 2

expect("three may call each other", measure("circles", ring("a", 3)), 0)
expect("four may not", measure("circles", ring("a", 4)), 1, "src/a: circle 4")
expect("a ceiling allows four", measure("circles", ring("a", 4), "circle src/a 4\n"), 0)
expect("but not five", measure("circles", ring("a", 5), "circle src/a 4\n"), 1, "ceiling is 4")
expect("a static function is its file's own", measure("circles", {
    "src/a/x.c": function("x", "y"), "src/a/y.c": "static " + function("y", "x")}), 0)
expect("folders may not call each other", measure("circles", {
    "src/a/x.c": function("x", "y"), "src/b/y.c": function("y", "x")}), 1,
    "src: wings 2", "src/a/x calls src/b/y, which src/layers keeps from it")
expect("a comment calls nothing", measure("circles", {
    "src/a/x.c": "/* dryi_y() */\n" + function("x"), "src/b/y.c": function("y", "x")}), 0)

expect("an include against the layers", measure(
    "layers", {"src/a/x.c": '#include "b/y.h"\n', "src/b/y.h": ""}), 1,
    "src/a/x.c:1: a must not include b")
expect("a wing is a module", measure(
    "layers", {"src/a/w/x.c": '#include "a/z.h"\n', "src/a/z.h": ""}, layers="a/w:\na: a/w\n"),
    1, "a/w must not include a")
expect("layers in a circle", measure("layers", {}, layers="a: b\nb: a\n"), 1,
       "a names {'b'} before they exist")

expect("52 lines", measure("sizes", {"src/a/x.c": function("x", lines=50)}), 0)
expect("53 lines", measure("sizes", {"src/a/x.c": function("x", lines=51)}), 1,
       "src/a/x.c:dryi_x: lines 53")
expect("decisions", measure("sizes", {"src/a/x.c": function("x", decisions=28)}), 1,
       "complexity 29")
expect("files", measure("sizes", {f"src/a/x{i}.c": "" for i in range(31)}), 1,
       "src/a: files 31")
expect("header", measure("sizes", {"src/a/x.h": "\n" * 301}), 1, "src/a/x.h: header 301")
expect("a page", measure("sizes", {"ARCHITECTURE.md": "word " * 901}), 1, "words 901")

expect("prose", measure("prose", {"src/a/x.c": COMMENTS + "/* It is one. */\n" * 2}), 0)
expect("inverted", measure("prose", {"src/a/x.c": INVERTED}), 1, "src/a: inverted 6.7")
for begin in ("of the pool", "behind it stands the next", "per block: its size", "in the list"):
    expect(begin, measure("prose", {"src/a/x.c": COMMENTS + f"/* {begin} */\n" * 2}), 1,
           "src/a: inverted 6.7")
expect("a subject first", measure("prose", {
    "src/a/x.c": COMMENTS + "/* size of each block */\n/* from[i] + to[i] */\n"}), 0)
LONG = "/* A" + " very" * 30 + " long one. */\n"
expect("long", measure("prose", {"src/a/x.c": COMMENTS + LONG * 2}), 1, "src/a: long 6.7")
expect("a fallen figure lowers its ceiling", measure(
    "prose", {"src/a/x.c": INVERTED}, "# kept\ninverted src/a 8\n", "--lower"), 0,
    "# kept\ninverted src/a 6.7\n")
left = measure("prose", {"src/a/x.c": COMMENTS + "/* It is one. */\n" * 2},
               "# kept\ninverted src/a 8\nlong b 9\n", "--lower")
expect("what met its target leaves, and what is no more", left, 0)
if left[2] != "# kept\n":
    failures.append(f"ceilings are left: {left[2]}")

SAY = 'void\ndryi_x(void)\n{\n    say(%s);\n}\n'
for what, code, said in (
        ("an option of ours", '"state it with "\n"--gpu-total"', "src/a/x.c:1: names --gpu-total"),
        ("a command with one", '"drystone replay x -c y"', "names drystone replay x -c"),
        ("a command alone", '"drystone replay x"', ""),
        ("other programs have options", '"docker run --memory=%s"', ""),
        ("a comment may name one", '/* "--gpu-total" */ "a"', "")):
    expect(what, measure("texts", {"src/a/x.c": f"const char *text = {code};\n"}), bool(said), said)

print("\n".join(failures) or "all as expected")
sys.exit(1 if failures else 0)
