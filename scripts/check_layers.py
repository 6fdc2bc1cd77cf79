#!/usr/bin/env python3
"""Fail if an #include crosses modules in a way src/layers forbids: check_layers.py ROOT

A module is a folder of src/, or a wing of one (place/torch). It includes what its line in
src/layers names, by "module/file.h". tool/ and python/ see the public headers, the system's and
their own. <drystone/drystone.h> is all of the public ones. No two files of src/ define a struct,
enum or union of one name.
"""
import pathlib
import re
import sys

import rulers

root = pathlib.Path(sys.argv[1])
src = root / "src"
allowed = rulers.layers(root)
bad = 0
TAG = re.compile(r"\b(?:struct|enum|union)\s+(dryi_\w+)\s*\{")


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match:
            yield number, match.group(1)


def complain(path, number, text):
    global bad
    print(f"{path}:{number}: {text}")
    bad += 1


for path in sorted(src.rglob("*.[ch]")):
    module = str(path.relative_to(src).parent)
    if module not in allowed:
        complain(path, 1, f"module {module} is not in src/layers")
        continue
    for number, name in includes(path):
        target = name.rpartition("/")[0]
        if "/" not in name or not (src / name).exists():
            complain(path, number, f'"{name}" is not a path below src/')
        elif target != module and target not in allowed[module]:
            complain(path, number, f"{module} must not include {target}")

homes = {}
for path in rulers.c_files(src):
    for tag in TAG.findall(rulers.code_of(path.read_text())):
        home = homes.setdefault(tag, path)
        if home != path:
            complain(path, 1, f"{tag} is defined in {home}, too")

for app in ("tool", "python"):
    for path in sorted((root / app).rglob("*.[ch]")):
        for number, name in includes(path):
            if not (path.parent / name).exists() and not (root / app / name).exists():
                complain(path, number, f'{app} must not include "{name}"')
for path in sorted((root / "include").rglob("*.h")):
    for number, name in includes(path):
        complain(path, number, f'public headers include <drystone/...>, not "{name}"')
everything = root / "include/drystone/drystone.h"
for path in sorted(everything.parent.glob("*.h")):
    if path != everything and f"#include <drystone/{path.name}>" not in everything.read_text():
        complain(everything, 1, f"<drystone/{path.name}> is missing")

sys.exit(bad != 0)
