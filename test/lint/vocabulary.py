#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No help text or manual page has a word that CONTRIBUTING.md says is not used: vocabulary.py TOOL

The table below "## Words" has three columns: the word, its meaning, and in backticks the words
not used for it. Names of options, of arguments, of commands and of schemas are not words of a
text. A page is a memory page, a huge page or a live page, by these names: `drystone help pages`
alone may say "page". What a browser opens is an HTML file.
"""
import pathlib
import re
import subprocess
import sys

tool = pathlib.Path(sys.argv[1]).resolve()
page = pathlib.Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
NAMES = re.compile(r"--[\w-]+|\b[A-Z]{2,}\b|\bdrystone\.[\w./-]+|^  \w[\w-]* ", re.MULTILINE)
PAGE = re.compile(r"(?<!live )(?<!memory )(?<!huge )\bpages?\b.{0,20}", re.IGNORECASE)


# Rows of the table that hold for help texts alone: manual pages have other senses of these words,
# "the block stays in use", or have them still.
HELP_ONLY = {"active", "allocation", "reserved", "snapshot", "stranded", "trace"}


def help_of(*words):
    return subprocess.run([tool, "help", *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def find_unused(where, text, words):
    return [f"{where}: '{found}', which is: {right}" for word, right in words.items()
            for found in re.findall(rf"\b{word}s?\b.{{0,20}}", text, re.IGNORECASE)]


table = page.read_text().split("\n## Words\n")[1].split("\n## ")[0]
rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines() if line.startswith("| ")][1:]
unused = {word: row[0] for row in rows for word in re.findall("`(.+?)`", row[2])}
overview = help_of()
commands = re.findall(r"^  ([\w-]+) ", overview.split("commands:\n")[1].split("\n\n")[0],
                      re.MULTILINE)
commands.remove("help")
wrong = [] if len(rows) > 9 and len(commands) > 9 else ["the table or the help has another form"]
for command in ["", *commands]:
    text = (help_of(command) if command else overview).split("\nexamples:\n")[0]
    text = " ".join(NAMES.sub("", text).split())
    wrong += find_unused(f"drystone help {command}", text, unused)
    wrong += [f"drystone help {command}: which page? '{found}'"
              for found in PAGE.findall(text) if command != "pages"]
manuals = sorted((page.parent / "doc").glob("*.scd"))
for manual in manuals:
    text = " ".join(re.sub(r"\*[^*\n]*\*|_[^_\n]*_", "", NAMES.sub("", manual.read_text())).split())
    wrong += find_unused(manual.name, text, {word: right for word, right in unused.items()
                                             if right not in HELP_ONLY})
print("\n".join(wrong) or f"{len(unused)} words are in no help of {len(commands)} commands, "
      f"and most of them in none of {len(manuals)} manual pages")
sys.exit(wrong != [])
