#!/usr/bin/env python3
"""Fail on comments whose grammar gets worse: check_prose.py ROOT [--lower] [--list FOLDER]

A sentence has a subject and a verb, in that order (CONTRIBUTING.md). Two figures a folder, in
percent of its sentences: `inverted`, those that open with a word after which the subject comes
late or never, and `long`, those of more than 30 words.
"""
import pathlib
import re
import sys

import rulers

INVERTED_MAX, LONG_MAX, WORDS_MAX = 3.0, 5.0, 30
SENTENCES_MIN = 30  # of fewer one sentence alone is beyond 3 %: they count with their parent
OPENERS = re.compile(
    r"(Of|What|Whose|Who|Where|That|Those|By|From|As|Else|To|Whether|But)\b")
COMMENT = re.compile(r"/\*(.*?)\*/|//([^\n]*)", re.S)
END = re.compile(r"(?<=[.?!])\s+(?=[\"'(]?[A-Z0-9])")
TOPS = ("include", "src", "tool", "shim", "standin")


def paragraphs(comment):
    """Without what is no prose: pictures, code and tables are indented, or follow two blanks."""
    lines = []
    for line in comment.splitlines():
        line = re.sub(r"^\s*\* ?", "", line).rstrip()
        if not line or re.match(r"\s{4,}|-{3}|={3}", line):
            yield " ".join(lines)
            lines = []
            continue
        heading = re.match(r"\s{0,2}[A-Z]\w+\s{2,}(.*)", line)  # "Errors     NO_SPACE: ..."
        if heading:
            yield " ".join(lines)
            lines = [heading[1]]
        else:
            lines.append(line.strip())
    yield " ".join(lines)


def sentences(text):
    strings = re.compile(r'"(?:\\.|[^"\\\n])*"')
    for match in COMMENT.finditer(strings.sub('""', text)):
        comment = match[1] if match[1] is not None else match[2]
        if "SPDX" in comment or comment.strip().startswith("---"):
            continue
        for paragraph in paragraphs(comment):
            for sentence in END.split(paragraph):
                words = sentence.split()
                if len(words) > 2 and sentence[0].isupper():
                    yield sentence, len(words)


def measure(root):
    found = {}
    for top in TOPS:
        if (root / top).exists():
            for path in rulers.c_files(root / top):
                folder = str(path.relative_to(root).parent)
                rows = found.setdefault(folder, [])
                rows += [(path, *s) for s in sentences(path.read_text())]
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    listed = sys.argv[sys.argv.index("--list") + 1] if "--list" in sys.argv else None
    inverted, long = rulers.Ceilings("inverted"), rulers.Ceilings("long")
    found = {k: v for k, v in measure(root).items() if len(v) >= SENTENCES_MIN}
    for folder, rows in sorted(found.items()):
        bad = [row for row in rows if OPENERS.match(row[1])]
        wide = [row for row in rows if row[2] > WORDS_MAX]
        if listed == folder:
            for kind, part in (("inverted", bad), ("long", wide)):
                for path, sentence, _ in part:
                    print(f"{path}: {kind}: {sentence}")
        share = [round(100 * len(part) / len(rows), 1) for part in (bad, wide)]
        inverted.hold(folder, share[0], INVERTED_MAX, f" % of {len(rows)} (--list {folder})")
        long.hold(folder, share[1], LONG_MAX, f" % of {len(rows)} (--list {folder})")
    return inverted.done() | long.done()


try:
    sys.exit(main())
except BrokenPipeError:
    pass
