#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schemas of doc/schema hold for what the command prints, and say no more than it prints:
schema.py TOOL MAKE_CASES MAKE_FLEET SHOW_PAGE NVML PRINT_FIELDS SMALL_LIBRARY

Every document of the kept outputs and of many runs is valid; every property of every schema is in
one of them, or stands in UNSEEN; a document with an unknown member is refused. SMALL_LIBRARY is any
shared library.

DRY_TEST_MCP is a folder with jsonschema-rs from PyPI; .ci/run brings one, and without it this test
skips. jsonschema, in Python, takes ten times as long for the same.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

where = os.environ.get("DRY_TEST_MCP", "")
if not where or not pathlib.Path(where, "jsonschema_rs").is_dir():
    print("SKIPPED: DRY_TEST_MCP names no folder with jsonschema-rs from PyPI")
    sys.exit(77)
sys.path.insert(0, where)

import jsonschema_rs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT / "test/data"
tool, make_cases, make_fleet, show_page, nvml, print_fields, library = (
    pathlib.Path(word).resolve() for word in sys.argv[1:8])
sys.path.insert(0, str(HERE / "live"))

from program import GIB, UNKNOWN, Machine  # noqa: E402

# "schema: property" of which there may be no instance, and why.
UNSEEN = {f"pages-bench: machine.bars{part}": "a machine without huge pages has nothing to compare"
          for part in ("[].name", "[].wanted", "[].ratio", "[].met")}

# Forms that are the command's own: of a store, of a page, of its server, of files that are no JSON.
INNER = {"drystone.pages-journal/1", "drystone.export.sqlite/1", "drystone.fleet.page/1",
         "drystone.fleet.row/2", "drystone.fleet.settings/2", "drystone.view/1"}
schemas = {path.name.removesuffix(".schema.json"): json.loads(path.read_text())
           for path in sorted((ROOT / "doc/schema").glob("*.json"))}
by_title = {schema["title"]: name for name, schema in schemas.items()}
judges = {name: jsonschema_rs.Draft202012Validator(schema) for name, schema in schemas.items()}
counts, seen, wrong = dict.fromkeys(schemas, 0), set(), []


def need(is_so, *about):
    if not is_so:
        wrong.append(" ".join(map(str, about)))
        if len(wrong) < 40:
            print("NOT SO:", *about, file=sys.stderr)


# --- instances ------------------------------------------------------------------------------


@functools.cache
def make_judge(name, part):
    """A validator of a part of a schema, which is JSON here."""
    whole = {**json.loads(part), "$defs": schemas[name]["$defs"]}
    return jsonschema_rs.Draft202012Validator(whole)


def look(name, schema, place, value):
    """Note the properties that a valid value has, by where the schema says them."""
    if "$ref" in schema:
        target = schema["$ref"].rsplit("/", 1)[1]
        look(name, schemas[name]["$defs"][target], target, value)
    for part in schema.get("oneOf", []) + schema.get("anyOf", []):
        if make_judge(name, json.dumps(part)).is_valid(value):
            look(name, part, place, value)
    if isinstance(value, list):
        for item in value:
            look(name, schema.get("items") or {}, place + "[]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in schema.get("properties", {}):
                seen.add((name, f"{place}.{key}"))
                look(name, schema["properties"][key], f"{place}.{key}", item)
            elif isinstance(schema.get("additionalProperties"), dict):
                look(name, schema["additionalProperties"], f"{place}.*", item)


def judge(document, *about):
    """Hold a document against its schema."""
    name = by_title.get(document["schema"])
    need(name, *about, "has no schema:", document["schema"])
    if not name:
        return
    error = next(judges[name].iter_errors(document), None)
    need(not error, *about, name, error and f"{error.instance_path}: {error.message[:300]}")
    if not error:
        if not counts[name]:  # one document tells it of its schema
            refuse_unknown(name, document)
        counts[name] += 1
        look(name, schemas[name], "", document)


def refuse_unknown(name, document):
    more = {**document, "unknown_member": 1}
    need(not judges[name].is_valid(more), name, "takes an unknown member")


def documents_of(text):
    """All JSON objects with a schema that begin a line."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, re.M):
        try:
            document, _ = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if isinstance(document, dict) and "schema" in document:
            yield document


def run(*words, where=None, env=None, count=1):
    """Run the command and judge what it prints; what it refuses prints nothing."""
    done = subprocess.run([tool, *map(str, words)], cwd=where, env=env,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          errors="surrogateescape", check=False)
    found = list(documents_of(done.stdout))
    if count is not None:
        need(len(found) == count, words, "prints", len(found), "documents:", done.stderr[-300:])
    for document in found:
        judge(document, *words)
    return found[0] if found else None


def check_kept():
    found = 0
    for path in sorted([*HERE.rglob("*.case"), *HERE.rglob("*.expected")]):
        for document in documents_of(path.read_text(errors="surrogateescape")):
            judge(document, path.name)
            found += 1
    need(found > 20, "only", found, "kept documents")


# --- recordings -----------------------------------------------------------------------------


def check_recordings(work):
    """All that reads a recording, on all of them; what is no recording is refused."""
    read = 0
    for path in sorted(work.iterdir()):
        if path.suffix not in (".pickle", ".trace", ".json"):
            continue
        if not run("info", path.name, "--json", where=work, count=None):
            continue
        read += 1
        for words in (["explain", "--runs", "4"], ["top", "--stacks", "-n", "3"], ["top", "--free"],
                      ["steps", "--capacity", "1GiB"], ["replay"], ["diff"],
                      ["sweep", "--runs", "4"]):
            run(*words, path.name, "--json", where=work, count=None)
        run("export", "-f", "json", "-o", "-", path.name, where=work, count=None)
        if path.suffix == ".pickle":
            run("anonymize", path.name, "-o", "out.pickle.out", "--json", where=work, count=None)
    need(read > 20, "only", read, "recordings are read")


def check_replays(work):
    """Options whose members are null without them."""
    run("replay", "steps.trace", "-p", "torch", "-p", "paged", "-p", "offline", "--check-order",
        "--steady-from", "20", "--find-capacity", "--json", where=work)
    run("replay", "releases.trace", "--across", "2.0,2.9,2.15", "--json", where=work)
    run("replay", "two-failures.pickle", "--across", "2.0,2.15", "--json", where=work)
    run("explain", "two-failures.pickle", "--gpu-total", "1GiB", "--json", where=work)
    run("diff", "before.pickle", "after.pickle", "--json", where=work)
    run("sweep", "before.pickle", "after.pickle", "--json", "--capacity", "1GiB", "--runs", "2",
        "-g", "max_split_size_mb=default,20:160:x2;expandable_segments=False,True", where=work)
    run("sweep", "steps.trace", "--json", "-g",
        "max_split_size_mb=default,20;large_segment_size_mb=20,40", where=work)
    for command, more in (("explain", []), ("steps", []), ("replay", ["-c", ""])):
        run(command, "steps.trace", *more, "--baseline", f"{command}.base", "--annotate", "github",
            where=work, count=0)
        judge(json.loads((work / f"{command}.base").read_text()), command, "--baseline")
    for path in sorted([*(ROOT / "test/corpus/message").iterdir(),
                        *(ROOT / "test/data/messages").glob("**/texts/*/*")]):
        with path.open("rb") as text:
            done = subprocess.run([tool, "explain", "--message", "-", "--json"], stdin=text,
                                  capture_output=True, text=True, check=False)
        for document in documents_of(done.stdout):
            judge(document, path.name)


def check_fleet(work):
    for name, *sick in (("sick", "leak=3", "extra=5", "oom=6", "device=7"), ("well",)):
        subprocess.run([make_fleet, work / name, "7", "8", "1", *sick], check=True)
        run("fleet", name, "--json", where=work)
    (work / "sick/rank1_memory_snapshot.pickle").write_bytes(b"")
    run("fleet", "sick", "--json", "--no-settings", where=work)


# --- plans, estimates, machines -------------------------------------------------------------


def check_plans(work):
    chains = [*work.glob("*.json"), *(ROOT / "example/chains").glob("*.json")]
    for path in sorted(chains):
        for words in ((), ("--budget", "30GiB"), ("--budget", "14MiB", "--timeline"),
                      ("--compare", "--curve", "--method", "nested"), ("--budget", "2MiB")):
            run("plan", path, "--json", *words, where=work, count=None)
    run("plan", "chain.json", "--method", "block", "--output", "plan.out", where=work, count=0)
    judge(json.loads((work / "plan.out").read_text()), "plan --output")
    run("plan", "chain.json", "--judge", "plan.out", "--json", where=work)


def check_estimates(work):
    for path in sorted((work / "models").iterdir()):
        for words in ((), ("--inference", "--card", "h100-80"), ("--card", "24GiB"),
                      ("--lora", "8", "--checkpointing", "every:2", "--data", "8", "--zero", "3"),
                      ("--pipeline", "2", "--stage", "1", "--accumulation", "4")):
            run("estimate", path, "--json", *words, count=None)


def check_machine(work):
    small = ("--bytes", "16MiB", "--rounds", "1")
    run("pages", "--json", "--need", "1GiB")
    run("pages", "--json", "--pid", os.getpid())
    run("pages", "--bench", "--only", "pages", "--json", *small)
    run("pages", "--bench", "--only", "malloc", "--json", "--rounds", "1")
    run("pages", "--bench", "--only", "malloc", "--here", "--json")
    run("run", "--dry-run", "--json", "--malloc", "glibc", "--", "true")
    run("run", "--dry-run", "--json", "--node", "none", "--watch", "--", "true", "with", "words")


def check_live():
    with Machine(tool, show_page, nvml) as m:
        program = m.start("train", rank=1, world=8, labels="pod=train-1")
        program.tell("pool", "native", 0, GIB, 1, 700)
        program.tell("source", "torch", 0, "GPU-a")
        program.tell("figures", 1, GIB // 2, GIB // 4, GIB, 7, UNKNOWN)
        program.tell("line", 1, GIB // 4, 12, "model.py:31_forward")
        m.start("idle")
        (m.folder / "drystone-live-1-0").write_bytes(b"no page")
        m.devices("device H100 GPU-a 8000000000 7000000000", f"process 0 {program.pid} 350000000",
                  "process 0 1 7")
        run(*m.words("--json")[1:], env=m.environment())
        run(*m.words("--json", "--for", "1", "train")[1:], env=m.environment())
        check_events(m)


def check_events(m):
    folder = m.folder / "snapshots"
    folder.mkdir()
    program = m.start("full", rank=2)
    program.tell("source", "torch", 0, "-")
    program.tell("figures", 0, GIB, GIB, GIB, 0, 0)
    watcher = subprocess.Popen(m.words("--every", "0.05", "--at-used", "90%", "--json", "--snapshot",
                                       folder, "full"), stdout=subprocess.PIPE, text=True,
                               env=m.environment())
    judge(json.loads(watcher.stdout.readline()), "live --at-used")
    program.end("kill")
    judge(json.loads(watcher.stdout.readline()), "live --at-used, the answer")
    watcher.communicate(timeout=60)


# --- dry runs -------------------------------------------------------------------------------

PROGRAM = '''"""What a PyTorch would have done: the hook writes what it always writes."""
import os, pickle, sys, types
import _drystone_dry_run as hook
import _drystone_engines as engines

class Memory:
    _snapshot = staticmethod(lambda: pickle.load(open(sys.argv[1], "rb")))

how = sys.argv[2]
stats = {f"{key}_bytes.all.peak": 1 << 30 for key in ("allocated", "reserved", "requested")}
cuda = types.SimpleNamespace(memory=Memory, device_count=lambda: 2, memory_stats=lambda d: stats)
torch = types.SimpleNamespace(__version__="2.9.0", version=types.SimpleNamespace(cuda="12.8"),
                              cuda=cuda)
guesses = [{"line": "p.py:3 f", "what": what, "count": 2}
           for what in ("copy", "item", "nonzero", "unique")]
owners = [{"module": "layers.0", "weights": 1, "gradients": 2, "optimizer": 3, "made": 4}]
hook._state.update(
    initialized=True, get_owners=lambda trace, device: owners, pid=os.getpid(), history=types.SimpleNamespace(), unseen="what follows",
    masks=types.SimpleNamespace(guesses=types.SimpleNamespace(get=lambda: guesses)),
    files=types.SimpleNamespace(kept=["best.pt"]), no_kernels="it has none",
    engine={"name": "vllm", **dict.fromkeys(engines.FIGURES), "kv_bytes": 1, "requests": 1.5}
    if how == "engine" else None, refusal="No memory." if how == "engine" else None,
    repeats=None if how == "error" else "step 3")
hook.note("a note")
fit = sys.modules["drystone.fit"] = types.ModuleType("drystone.fit")
fit.tell = lambda: {"flops": 1e9, "applied": {"allocator": "so"}, "offers": [
    {"name": "allocator", "values": ["so"], "text": "{}", "numbers": "same", "helps": "any",
     "patch": "a"}]}
if how == "oom":
    hook.on_oom(0, 1 << 30, 80 << 30, 1 << 20)
try:
    if how == "error":
        raise ValueError("an error")
except ValueError as error:
    hook.on_exception(ValueError, error, error.__traceback__)
with open(os.path.join(hook._settings["out"], "called.1"), "w") as out:
    out.write("3 cudaNobodyWroteThis\\n")
hook.dump(torch)
hook.leave(0)
'''


def check_dry_runs(work):
    """A folder that looks like a torch stands in for it."""
    (work / "torch/lib").mkdir(parents=True)
    (work / "torch/__init__.py").write_text("")
    (work / "torch/version.py").write_text("__version__ = '2.9.0'\ncuda = '12.8'\n")
    shutil.copy(library, work / "torch/lib/libtorch_cuda.so")
    (work / "program.py").write_text(PROGRAM)
    python = work / "python3"  # one without the packages of this machine
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -s "$@"\n')
    python.chmod(0o755)
    env = {key: value for key, value in os.environ.items()
           if key not in ("LD_PRELOAD", "RANK", "WORLD_SIZE")}
    env |= {"PYTHONPATH": str(work), "PYTHONNOUSERSITE": "1"}
    for words in (("before.pickle", "fine"), ("before.pickle", "error"),
                  ("before.pickle", "engine"), ("two-failures.pickle", "oom")):
        run("dry-run", "--json", "--bracket", "--", python, "program.py", *words, where=work,
            env=env)
    run("dry-run", "--json", "--vary", "HOW=fine,oom", "--svg", "curve.svg", "--", python,
        "program.py", "before.pickle", "{HOW}", where=work, env=env)
    for words in (("fine", "--runs", "1"), ("fine", "--memory", "1GiB")):
        run("fit", "--json", *words[1:], "--", python, "program.py", "before.pickle", words[0],
            where=work, env=env)
    drawn = xml.etree.ElementTree.parse(work / "curve.svg").getroot()
    need(drawn.tag.endswith("svg") and "HOW" in "".join(drawn.itertext()), "--svg draws no curve")


# --- the schemas themselves -----------------------------------------------------------------


def properties_of(name, schema, place):
    """Each property below a schema, by where it stands, and each schema of an object."""
    for key, part in schema.get("properties", {}).items():
        yield f"{place}.{key}", part
        yield from properties_of(name, part, f"{place}.{key}")
    for part in schema.get("oneOf", []) + schema.get("anyOf", []):
        yield from properties_of(name, part, place)
    if isinstance(schema.get("items"), dict):
        yield from properties_of(name, schema["items"], place + "[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from properties_of(name, schema["additionalProperties"], f"{place}.*")
    if place == "":
        for target, part in schema.get("$defs", {}).items():
            yield from properties_of(name, part, target)


def objects_in(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and "type" in schema:
            yield schema
        for part in schema.values():
            yield from objects_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects_in(part)


def check_forms():
    """Each is a schema, closed, and says in a line what each member is."""
    for name, schema in schemas.items():
        jsonschema_rs.meta.validate(schema)
        for one in objects_in(schema):
            need(one["additionalProperties"] is False, name, "is open:", list(one["properties"]))
            need(set(one["required"]) <= set(one["properties"]), name, "requires more than it has")
        for place, part in properties_of(name, schema, ""):
            target = schema.get("$defs", {}).get(part.get("$ref", "").rsplit("/", 1)[-1], {})
            text = part.get("description") or target.get("description")
            need(text and "\n" not in text, name, place, "has no description")
    said = set()
    for path in (ROOT / "tool").rglob("*.[ch]"):
        said |= set(re.findall(r"drystone\.[a-z.-]+/[0-9]+", path.read_text()))
    need(said - INNER == set(by_title), "forms without a schema, or the other way:",
         (said - INNER) ^ set(by_title))


def enums_in(schema):
    if isinstance(schema, dict):
        if all(isinstance(word, (str, type(None))) for word in schema.get("enum", [1])):
            yield frozenset(schema["enum"]) - {None}
        for part in schema.values():
            yield from enums_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from enums_in(part)


def check_words(lists):
    """A closed list of words is the library's own, or of words that the command spells."""
    known = {frozenset(words) for words in lists.values()}
    used = {words for schema in schemas.values() for words in enums_in(schema)}
    for words in known - used:
        need(False, "in no schema is the library's list", "|".join(sorted(words)))
    text = "".join(path.read_text() for files in ("tool/**/*.c", "src/**/*.c", "standin/hook/*.py")
                   for path in ROOT.glob(files))
    for words in used - known:
        for word in words:
            need(f'"{word}"' in text, "nobody says", word, "of", "|".join(sorted(words)))


def check_seen():
    for name, schema in schemas.items():
        need(counts[name] > 0, name, "has no instance")
        for place, _ in properties_of(name, schema, ""):
            need((name, place) in seen or f"{name}: {place}" in UNSEEN, f"{name}: {place}",
                 "is in no instance")


def check_lists():
    """The library's lists of words and keys of statistics; schema_tables.py has its tables."""
    lists = json.loads(subprocess.run([print_fields], check=True, capture_output=True).stdout)
    patterns = schemas["replay"]["$defs"]["stats"]["patternProperties"]
    check_words(lists["words"])
    for key in lists["stats"]:
        need(sum(bool(re.search(p, key)) for p in patterns) == 1, "statistic", key)


with tempfile.TemporaryDirectory() as top:
    folder = pathlib.Path(top)
    subprocess.run([make_cases, folder], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(DATA, folder, dirs_exist_ok=True)
    check_forms()
    check_lists()
    check_kept()
    check_recordings(folder)
    check_replays(folder)
    check_fleet(folder)
    check_plans(folder)
    check_estimates(folder)
    check_machine(folder)
    check_live()
    check_dry_runs(folder)
    check_seen()
print(f"{sum(counts.values())} documents of {len(schemas)} schemas; {len(seen)} properties are "
      f"seen, and {len(UNSEEN)} need not be")
sys.exit(1 if wrong else 0)
