#!/usr/bin/env python3
"""Make a C source of a page's bytes: embed.py viewer/page.html page.c view_page

The source defines the struct page of that name, which tool/view/page.h declares.
"""

import pathlib
import sys


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    rows = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
    pathlib.Path(sys.argv[2]).write_text(
        '#include "view/page.h"\n\n'
        f"static const unsigned char bytes[] = {{\n{(','+chr(10)).join(rows)}}};\n"
        f"const struct page {sys.argv[3]} = {{bytes, sizeof bytes}};\n")


main()
