# SPDX-License-Identifier: Apache-2.0
"""The two text formats, read by their specifications, and nothing forgiven."""
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def read_labels(text):
    """`a="b",c="d"` as a sorted tuple of pairs."""
    labels, at = [], 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, text[at:]
        labels.append((found[1], re.sub(r'\\[\\"n]', lambda m: UNESCAPED[m[0]], found[2])))
        at = found.end()
        assert at == len(text) or text[at] == ",", text[at:]
        at += 1
    assert len({key for key, _ in labels}) == len(labels), labels
    return tuple(sorted(labels))


def read(text, is_open):
    """{name: {labels: value}}; each family has its head once, and its samples below."""
    assert text.endswith("\n") and "\r" not in text
    lines = text[:-1].split("\n")
    if is_open:
        assert lines.pop() == "# EOF"
    families, samples, family, kind = {}, {}, None, None
    for line in lines:
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert NAME.fullmatch(name) and rest
            if word == "HELP":
                assert name not in families, name
                family = name
                families[name] = {}
            assert name == family and word not in families[name], line
            families[name][word] = rest
            if word == "UNIT":
                assert is_open and name.endswith("_" + rest), line
            kind = families[name].get("TYPE")
            continue
        found = re.fullmatch(r"([a-zA-Z0-9_:]+)(?:\{(.*)\})? (\S+)", line, re.DOTALL)
        assert found, line
        assert kind in ("gauge", "counter"), line
        total = kind == "counter"
        assert found[1] == family + ("_total" if total and is_open else ""), line
        assert found[1].endswith("_total") == total, line
        labels = read_labels(found[2] or "")
        rows = samples.setdefault(found[1], {})
        assert labels not in rows, f"twice: {line}"
        rows[labels] = float(found[3])
    return samples


def find(samples, family, /, **labels):
    """The values of a family's series that have these labels."""
    wanted = {(key, str(value)) for key, value in labels.items()}
    return [value for keys, value in samples.get("drystone_" + family, {}).items()
            if wanted <= set(keys)]


def one(samples, family, /, **labels):
    values = find(samples, family, **labels)
    assert len(values) == 1, (family, labels, values)
    return values[0]
