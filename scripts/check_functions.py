#!/usr/bin/env python3
"""Fail on functions of more than 70 lines: check_functions.py FOLDER...

By the project's format a function's body begins and ends with a brace in column one.
"""
import pathlib
import sys

LINES_MAX = 70
bad = 0
for folder in sys.argv[1:]:
    for path in sorted(pathlib.Path(folder).rglob("*.[ch]")):
        begin = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line == "{":
                begin = number
            elif line == "}" and begin:
                if number - begin + 1 > LINES_MAX:
                    print(f"{path}:{begin}: a function of {number - begin + 1} lines")
                    bad += 1
                begin = None
sys.exit(bad != 0)
