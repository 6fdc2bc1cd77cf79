#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects of doc/schema whose members are tables of fields are written by these tables:
schema_tables.py [--update] PRINT_FIELDS

Without --update, fail if a schema is not what would be written.
"""
import json
import pathlib
import subprocess
import sys

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "doc/schema"
WIDTH = 118  # of a line

# Tables, and where their members stand: the schema and its definition, "" for the document.
PLACES = [("run", "replay", "run"), ("packed", "replay", "packed"),
          ("steady", "replay", "steady"), ("order", "replay", "order"),
          ("check", "replay", "check"), ("recorded", "replay", "recorded"),
          ("state", "explain", "state"), ("step", "steps", "step"),
          ("growth", "steps", "suspect"), ("steps_totals", "steps", ""),
          ("diff_row", "diff", "owner"), ("diff_cell", "diff", "cell"),
          ("diff_fact", "diff", "fact"), ("live", "live", "source"),
          ("detail", "live", "detail"), ("lane", "live", "lane")]
TYPES = {"bool": "boolean", "text": "string", "chars": "string", "real": "number"}
# Members that are no field of a table.
OTHERS = {"run": {"conf", "packed", "steady", "order", "release", "stats"},
          "check": {"first_mismatch"}, "recorded": {"place", "conf"}, "suspect": {"owner"},
          "": {"schema", "file", "device", "events", "simulated", "source", "reason", "marker",
               "anchor", "steps", "growth"},
          "owner": {"name", "what", "subjects"}, "fact": {"values"},
          "source": {"name", "kind", "device", "number", "uuid", "updates", "update_age_seconds",
                     "limit_bytes", "room_bytes", "growth_per_s", "retries_per_min",
                     "ooms_per_min", "time_to_limit_seconds", "detail"},
          "detail": {"age_s", "more_lanes", "lanes", "lines"}, "lane": {"stream", "pool"}}


def make_property(field, old):
    """The schema of a field; the words of a text, and whether it may be null, stay as they are."""
    is_null = not field["is_always"] or field["unit"] == "event"
    kind = "number" if field["unit"] == "ns" else TYPES.get(field["type"], "integer")
    about = field["meaning"][0].upper() + field["meaning"][1:]
    if kind == "string" and old:
        made = {key: value for key, value in old.items() if key != "description"}
        is_null = "null" in made["type"]
    else:
        made = {"type": [kind, "null"] if is_null else kind}
    if kind in ("integer", "number") and field["type"] != "i64" or field["unit"] == "count":
        made["minimum"] = 0
    if field["unit"] == "share":
        made["maximum"] = 1
    if is_null and "null" not in about:
        about += "; null: none known"
    return {**made, "description": about}


def update(schema, target, fields):
    """Write the members of an object that are fields, in the order of the table."""
    part = schema["$defs"][target] if target else schema
    old, made = part["properties"], {}
    optional = set(old) - set(part["required"])
    for key in old:
        if key in OTHERS.get(target, ()):
            made[key] = old[key]
        elif not set(fields) & set(made):
            made |= {key: make_property(field, old.get(key)) for key, field in fields.items()}
    part["properties"] = made
    part["required"] = [key for key in made if key not in optional]


def layout(value, indent=0, width=0, has_rows=True):
    """The lines of a value: one if it fits; else its short members fill lines, or have rows."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(flat) <= width and not has_rows:
        return [flat]
    members = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    lines, may_fill = [], False
    for i, (key, item) in enumerate(members):
        head = "" if key is None else json.dumps(key) + ": "
        end = "," if i + 1 < len(value) else ""
        text = layout(item, indent + 2, WIDTH - indent - 2 - len(head + end),
                      key in ("properties", "$defs"))
        text[0] = head + text[0]
        text[-1] += end
        is_short = len(text) == 1 and not has_rows
        if is_short and may_fill and len(lines[-1] + text[0]) < WIDTH:
            lines[-1] += " " + text[0]
        else:
            lines += [" " * (indent + 2) + text[0], *text[1:]]
        may_fill = is_short
    ends = "{}" if isinstance(value, dict) else "[]"
    return [ends[0], *lines, " " * indent + ends[1]]


def main():
    is_update = sys.argv[1] == "--update"
    printed = subprocess.run([sys.argv[-1]], check=True, capture_output=True).stdout
    tables, stale = json.loads(printed)["tables"], []
    if set(tables) != {table for table, *_ in PLACES}:
        sys.exit("a table has no place in a schema, or the other way")
    schemas = {name: json.loads((SCHEMAS / f"{name}.schema.json").read_text())
               for _, name, _ in PLACES}
    for table, name, target in PLACES:
        update(schemas[name], target, tables[table])
    for name, schema in schemas.items():
        path, text = SCHEMAS / f"{name}.schema.json", "\n".join(layout(schema)) + "\n"
        if path.read_text() != text:
            stale.append(path.name)
            if is_update:
                path.write_text(text)
    if stale and not is_update:
        sys.exit(f"{' '.join(stale)}: not as their tables say; run schema_tables.py --update")


if __name__ == "__main__":
    main()
