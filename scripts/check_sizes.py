#!/usr/bin/env python3
"""Fail on what has grown too large: check_sizes.py ROOT [--lower]

`lines` and `complexity` of functions (decisions and one; the largest of a folder), `files` of a
folder, `header`: lines of a private header, `words` of a page, `unasserted`: lines of a module for
each of its assertions, in the modules that move memory.
"""
import pathlib
import re
import sys

import rulers

LINES_MAX, LINES_IN_TESTS_MAX, COMPLEXITY_MAX = 52, 70, 27
FILES_MAX, FILES_IN_SRC_MAX, HEADER_MAX = 38, 30, 300
PAGES = {"ARCHITECTURE.md": 900}
UNASSERTED_MAX = 1000 / 15
ASSERTED = ("src/place/paged", "src/place/torch", "src/place/forecast", "src/place/offline", "src/pool",
            "src/host/pinned")
PRODUCT = ("src", "include", "tool", "standin")
FOLDERS = (*PRODUCT, "test", "bench", "example")
DECISION = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")


def hold_functions(root):
    lines, complexity = rulers.Ceilings("lines"), rulers.Ceilings("complexity")
    for path in rulers.c_files(*(root / folder for folder in FOLDERS)):
        for function in rulers.functions(rulers.code_of(path.read_text())):
            inside = path.relative_to(root)
            place = f"{inside}:{function.name}"
            lines.hold(place, len(function.body),
                       LINES_MAX if inside.parts[0] in PRODUCT else LINES_IN_TESTS_MAX)
            complexity.hold(place, 1 + len(DECISION.findall("\n".join(function.body))),
                            COMPLEXITY_MAX)
    return lines.done() | complexity.done()


def hold_files(root):
    files, header = rulers.Ceilings("files"), rulers.Ceilings("header")
    for top in FOLDERS:
        if not (root / top).exists():
            continue
        for folder in [root / top, *sorted((root / top).rglob("*/"))]:
            if "corpus" in folder.parts:
                continue
            sources = [p for p in folder.iterdir() if p.is_file() and p.name != "meson.build"]
            limit = FILES_IN_SRC_MAX if top == "src" else FILES_MAX
            files.hold(str(folder.relative_to(root)), len(sources), limit)
    for path in rulers.c_files(root / "src", root / "tool"):
        if path.suffix == ".h":
            count = len(path.read_text().splitlines())
            header.hold(str(path.relative_to(root)), count, HEADER_MAX)
    return files.done() | header.done()


def hold_pages(root):
    words = rulers.Ceilings("words")
    for name, limit in PAGES.items():
        words.hold(name, len((root / name).read_text().split()), limit)
    return words.done()


def hold_assertions(root):
    unasserted = rulers.Ceilings("unasserted")
    for module in ASSERTED:
        texts = [path.read_text() for path in rulers.c_files(root / module)]
        count = sum(rulers.code_of(text).count("DRYI_ASSERT") for text in texts)
        unasserted.hold(module, sum(len(text.splitlines()) for text in texts) / max(count, 1),
                        UNASSERTED_MAX)
    return unasserted.done()


def main():
    root = pathlib.Path(sys.argv[1])
    return hold_functions(root) | hold_files(root) | hold_pages(root) | hold_assertions(root)


sys.exit(main())
