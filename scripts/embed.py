#!/usr/bin/env python3
"""Make a C source of a page's bytes: embed.py viewer/page.html html.c view_html

The source defines the struct html of that name, which tool/view/html.h declares.
"""

import pathlib
import sys


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    rows = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
    pathlib.Path(sys.argv[2]).write_text(
        '#include "view/html.h"\n\n'
        f"static const unsigned char bytes[] = {{\n{(','+chr(10)).join(rows)}}};\n"
        f"const struct html {sys.argv[3]} = {{bytes, sizeof bytes}};\n")


main()
