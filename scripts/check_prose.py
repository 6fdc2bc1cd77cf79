#!/usr/bin/env python3
"""Fail on comments whose grammar gets worse: check_prose.py ROOT [--lower] [--list FOLDER]

A sentence has a subject and a verb, in that order (CONTRIBUTING.md). Two figures a folder:
`inverted`, the percentage of its sentences and fragments (those that begin in lower case, such as
a member's comment) that open with a word after which the subject comes late or never, and `long`,
the percentage of its sentences that have more than 30 words.
"""
import pathlib
import re
import sys

import rulers

INVERTED_MAX, LONG_MAX, WORDS_MAX = 2.0, 5.0, 30
SENTENCES_MIN = 30  # folders with fewer are not measured: a single sentence would be beyond 2 %
OPENERS = re.compile(
    r"(of|what|whose|who|where|that|those|by|from|as|else|to|whether|but)\b(?![\[(.])", re.I)
PLACE = r"(?:above|among|behind|below|beside|between|beyond|in|on|over|under|within)"
LATE = re.compile(  # "behind it stands the next", "then come the pages"
    rf"({PLACE} (it|them|this|these|(the|an?|each|every) \w+)|so|then) "
    r"(are|is|was|were|comes?|do(es)?|did|follows?|lies?|stands?)\b", re.I)
NO_SUBJECT = re.compile(  # "per entry: its size", "in the list of its stream"
    rf"({PLACE}|for|per|with|without) [^.,;:]+: |{PLACE} ((an?|each|its|the|this)\b|`)")
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
                if len(words) > 1 + sentence[:1].isupper() and sentence[0].isalpha():
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
        bad = [row for row in rows
               if any(rule.match(row[1]) for rule in (OPENERS, LATE, NO_SUBJECT))]
        whole = [row for row in rows if row[1][0].isupper()]
        wide = [row for row in whole if row[2] > WORDS_MAX]
        if listed == folder:
            for kind, part in (("inverted", bad), ("long", wide)):
                for path, sentence, _ in part:
                    print(f"{path}: {kind}: {sentence}")
        for ruler, part, of, most in ((inverted, bad, rows, INVERTED_MAX),
                                      (long, wide, whole, LONG_MAX)):
            share = round(100 * len(part) / max(len(of), 1), 1)
            ruler.hold(folder, share, most, f" % of {len(of)} (--list {folder})")
    return inverted.done() | long.done()


try:
    sys.exit(main())
except BrokenPipeError:
    pass
