#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a training step against its batch size, as a picture.

    python3 example/peak_by_batch.py --budget 100MiB --svg peak.svg

Nothing runs: sizes come of FakeTensorMode, peaks of `drystone plan`. Four curves: everything is
kept; every other layer is run again; every stage is; and the least that any plan of one level
needs. What bends the last ones is the part that no checkpoint helps: weights, and the logits.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from drystone import plan as dp
import small_gpt

NO_LIMIT = 1 << 60
CURVES = [("none", "everything is kept", "#444444"),
          ("every", "every other is run again", "#1f77b4"),
          ("block", "each is run again", "#2ca02c"),
          ("least", "the least of all plans", "#d62728")]
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def read_size(text):
    number = text.rstrip("KMGTiB")
    try:
        return int(float(number) * UNITS[text[len(number):]])
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 40GiB") from None


def show_size(size):
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}"
    return f"{size} B"


def peaks(stages, loss, example):
    """Bytes of the device, by curve."""
    chain = dp.measure(stages, example, loss=loss, fake=True)
    found = {method: dp.plan(chain, NO_LIMIT, method=method)["predicted"]["peak_bytes"]
             for method in ("none", "every", "block")}
    found["least"] = dp.plan(chain, NO_LIMIT)["min_feasible_budget"]["bytes"]
    return found


def print_plot(batches, table, budget):
    most = max(max(row.values()) for row in table)
    for batch, row in zip(batches, table):
        for method, _, _ in CURVES:
            bar = "#" * max(1, round(40 * row[method] / most))
            over = " over" if budget and row[method] > budget else ""
            print(f"{batch if method == 'none' else '':>5} {method:<6}{bar:<41}"
                  f"{show_size(row[method]):>11}{over}")
    print()
    for method, meaning, _ in CURVES:
        fitting = [batch for batch, row in zip(batches, table)
                   if not budget or row[method] <= budget]
        most_text = f"up to batch {max(fitting)} fits" if fitting else "none fits"
        print(f"{method:<6} {meaning:<26}{most_text if budget else ''}")


def make_svg(batches, table, budget):
    width, height, left, top = 640, 400, 80, 20
    most = max([max(row.values()) for row in table] + [budget or 0])

    def at(batch, size):
        x = left + (width - left - 20) * batch / batches[-1]
        return f"{x:.1f},{top + (height - top - 50) * (1 - size / most):.1f}"

    def line(points, color, more=""):
        return f'<polyline fill="none" stroke="{color}" stroke-width="2" {more} ' \
               f'points="{" ".join(points)}"/>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             line([at(0, most), at(0, 0), at(batches[-1], 0)], "#999999")]
    for size in (0, most // 2, most):
        x, y = at(0, size).split(",")
        parts.append(f'<text x="{float(x) - 6}" y="{y}" text-anchor="end">'
                     f'{show_size(size)}</text>')
    for batch in batches:
        x, y = at(batch, 0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">{batch}</text>')
    for number, (method, meaning, color) in enumerate(CURVES):
        parts.append(line([at(b, row[method]) for b, row in zip(batches, table)], color))
        parts.append(f'<text x="{left + 16}" y="{top + 14 + 16 * number}" fill="{color}">'
                     f'{method}: {meaning}</text>')
    if budget:
        parts.append(line([at(0, budget), at(batches[-1], budget)], "#000000",
                          'stroke-dasharray="4"'))
    return "\n".join(parts + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="1,2,4,8,16,32", help="sizes, ascending")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--budget", type=read_size, help="a line in the picture: 100MiB")
    parser.add_argument("--svg", help="also draw it into this file")
    args = parser.parse_args()
    batches = sorted(int(batch) for batch in args.batches.split(","))
    stages, loss, tokens = small_gpt.make(args.layers)
    table = [peaks(stages, loss, tokens(batch)) for batch in batches]
    print_plot(batches, table, args.budget)
    if args.svg:
        pathlib.Path(args.svg).write_text(make_svg(batches, table, args.budget),
                                          encoding="utf-8")


if __name__ == "__main__":
    main()
