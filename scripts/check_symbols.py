#!/usr/bin/env python3
"""Compare the headers' DRY_API functions with a library: check_symbols.py INCLUDE LIBRARY"""
import pathlib
import re
import subprocess
import sys

declared = set()
for path in pathlib.Path(sys.argv[1]).rglob("*.h"):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    for declaration in re.findall(r"\bDRY_API\b([^;{]*);", text):
        declared.add(re.search(r"\b(dry_\w+)\s*\(", declaration).group(1))

out = subprocess.run(["nm", "-D", "--defined-only", sys.argv[2]],
                     check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
exported = {name for name in exported if not name.startswith("DRYSTONE_")}

for name in sorted(declared - exported):
    print(f"declared, but not exported: {name}")
for name in sorted(exported - declared):
    print(f"exported, but not declared: {name}")
sys.exit(declared != exported)
