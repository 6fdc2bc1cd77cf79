#!/usr/bin/env python3
"""Make a C source of a file's bytes: embed.py viewer/page.html page.c

The source defines page_bytes and page_length, which tool/view/page.h declares.
"""

import pathlib
import sys


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    rows = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
    pathlib.Path(sys.argv[2]).write_text(
        '#include "view/page.h"\n\n'
        f"const size_t page_length = {len(data)};\n"
        f"const unsigned char page_bytes[] = {{\n{(','+chr(10)).join(rows)}}};\n")


main()
