#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drystone-explain(1) names every figure that a verdict goes by: verdicts.py

From how much on something is a finding is a constant of src/explain; the page tells the same
of the cause that it belongs to.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
WORDS = {2: "twice", 3: "three", 4: "quarter", 5: "fifth", 10: "tenth", 20: "twentieth"}
# Of which cause the page has to tell it.
CAUSES = {"WASTE_BYTES_MIN": ["fragmentation", "pending"], "WASTE_SHARE": ["fragmentation"],
          "CACHED_SHARE": ["fragmentation"],
          "LEAK_BYTES_MIN": ["leak"], "LEAK_SHARE": ["leak"], "SPIKE_SHARE": ["spike"],
          "SPIKE_STEPS_MIN": ["spike"], "UNKNOWN_SHARE": ["overflow"],
          "IMBALANCE_RATIO": ["imbalance"]}

code = "".join(next((root / "src/explain").rglob(name)).read_text()
               for name in ("explain_cause.c", "explain_reason.c"))
page = (root / "doc/drystone-explain.1.scd").read_text()
page = page.split("## The verdict")[1].split("\n## ")[0]
entries = dict(re.findall(r"^\*(\w+)\*.*\n((?:\t.*\n)+)", page, re.MULTILINE))
failures = []
for name, causes in CAUSES.items():
    found = re.search(rf"#define {name} \(?(\d+)( \* DRYI_MIB)?", code)
    if not found:
        sys.exit(f"{name} is not in the code")
    word = found[1] + " MiB" if found[2] else WORDS[int(found[1])]
    failures += [f"{cause}: {word} ({name}) is not in the page" for cause in causes
                 if word not in entries[cause]]
print("\n".join(failures) or f"{len(CAUSES)} figures")
sys.exit(failures != [])
