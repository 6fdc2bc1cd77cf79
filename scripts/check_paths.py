#!/usr/bin/env python3
"""Fail on a file that a page or a comment names and that is not there: check_paths.py ROOT

In pages (ARCHITECTURE, CONTRIBUTING, README, doc/): what stands in `backticks` and looks like a
file or a folder of ours, and links. In sources: "wing/file.h" and the like. A path may be the
end of one; NAME, NOUN and WING stand for any.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

FILE = re.compile(r"\w[\w./*-]*\.(?:c|h|py|sh|md|scd|case|cc)")
FOLDER = re.compile(r"(?:src|tool|test|include|doc|scripts|bench|python|example)/[\w./-]+")
IN_CODE = re.compile(r"\b(?:src/)?(?:base|os|device|place|pool|host|trace|replay|explain|plan|"
                     r"test|tool)/[\w/]+\.[ch]\b")
PLACEHOLDER = re.compile(r"NAME|NOUN|WING|\.\.\.")


class Tree:
    def __init__(self, root):
        text = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                              capture_output=True, text=True, check=True).stdout
        self.files = {name for name in text.splitlines() if (root / name).exists()}
        self.folders = {str(parent) for name in self.files
                        for parent in pathlib.PurePath(name).parents}

    def has(self, name):
        name = name.rstrip("/")
        if PLACEHOLDER.search(name) or name in self.files or name in self.folders:
            return True
        return any(fnmatch.fnmatch(known, name) or fnmatch.fnmatch(known, "*/" + name)
                   for known in self.files)


def named_in_page(text):
    for quoted in re.findall(r"`([^`\n]+)`", text):
        for word in re.split(r"[\s,<>]+", quoted):
            if FILE.fullmatch(word) or FOLDER.fullmatch(word):
                yield word


def named_in_code(text):
    for comment in re.findall(r"/\*.*?\*/", text, re.S):
        yield from IN_CODE.findall(comment)


def main():
    root = pathlib.Path(sys.argv[1])
    tree = Tree(root)
    bad = 0
    for name in sorted(tree.files):
        path = root / name
        if path.suffix == ".md" and name != "CHANGELOG.md":
            text = path.read_text()
            found = set(named_in_page(text))
            links = {link for link in re.findall(r"\]\(([^)#\s]+)\)", text) if "://" not in link}
            found |= {link for link in links if not (path.parent / link).exists()}
        elif path.suffix in (".c", ".h"):
            found = set(named_in_code(path.read_text()))
        else:
            continue
        for word in sorted(found):
            if not tree.has(word):
                print(f"{name}: names {word}, which is not there")
                bad += 1
    return 1 if bad else 0


sys.exit(main())
