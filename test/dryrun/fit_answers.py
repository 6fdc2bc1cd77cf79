#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `drystone fit` answers: fit_answers.py TOOL SMALL_LIBRARY [NAME...]

Folders that look like a torch and like drystone.fit stand in for them: what is changed takes from
the peak. A case is a program's memory in MiB, what each change does, the options, the status, and
words that must be printed; a word after "not" must not be. The card has 269 MiB for PyTorch.
"""
import json
import pathlib
import sys

import fake_torch

tool, library = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
chosen = sys.argv[3:]

TORCH = """
import types
from torch.version import __version__
from torch import version
_calls, _sizes = [], {}
def _refuse(*_, **__): raise RuntimeError("no history here")
def _stats(device=0):
    return {**{f"{k}_bytes.all.peak": v for k, v in _sizes.items()},
            "allocation.all.allocated": 0, "requested_bytes.all.allocated": 0}
def save(*_, **__): pass
serialization = types.SimpleNamespace(save=save)
cuda = types.SimpleNamespace(
    _lazy_call=_calls.append, device_count=lambda: 1, memory_stats=_stats,
    memory=types.SimpleNamespace(_record_memory_history=_refuse,
                                 _snapshot=lambda: {"segments": [], "device_traces": [[]]}),
    get_device_capability=lambda _=0: (9, 0), get_arch_list=lambda: ["sm_90"])
_C = types.SimpleNamespace()
default_generator = types.SimpleNamespace(manual_seed=lambda seed: None)
import sys
optim = types.ModuleType("torch.optim"); sys.modules["torch.optim"] = optim
optim.Optimizer = type("Optimizer", (), {})
optimizer = types.ModuleType("torch.optim.optimizer")
sys.modules["torch.optim.optimizer"] = optimizer
optimizer.register_optimizer_step_post_hook = lambda hook: None
autograd = types.SimpleNamespace(backward=None)
def use():
    while _calls: _calls.pop(0)()
"""
# The package, as far as the hooks ask for it.
FIT = """
import json, os, sys
about, asked = json.loads(sys.argv[1]), {"changes": {}, "looks": False, "counts": False}
def _before(text): asked.update(json.loads(text))
def _begin(watch): pass
def tell():
    changes, refused = asked["changes"], about.get("refused", {})
    offers = [{"name": name, "values": values, "text": text, "numbers": numbers, "helps": helps,
               "patch": f"{name}({{}})  # 1\\n# 2\\n"}
              for name, (values, text, numbers, helps, _, _) in about["offers"].items()]
    return about.get("told") or {
        "flops": 100 + sum(about["offers"][name][5] * value for name, value in changes.items()),
        "link_bytes": about.get("link", 0) * len(changes),
        "offers": offers if asked["looks"] else [],
        "applied": {name: name for name in changes if name not in refused}, "refused": refused}
"""
PROGRAM = """
import json, os, sys, torch
from drystone.fit import about, asked
changes = {name: value for name, value in asked["changes"].items()
           if name not in about.get("refused", {})}
given = json.loads(os.environ.get("DRYSTONE_DRY_RUN", "{}"))
assert not given or given["brief"] != asked["looks"], given
assert bool(given) == asked["counts"], asked
for name, value in about.get("options", {}).items():
    assert given[name] == value, (name, given[name])
if "devices" in about:
    assert f"devices={about['devices']};" in os.environ["DRYSTONE_STANDIN"]
    assert os.environ["RANK"] == "2"
if about.get("early"):
    raise ValueError("before any GPU")
share = int(sys.argv[2]) if len(sys.argv) > 2 else 100
if len(sys.argv) > 3:
    print("PIECES", sys.argv[3])
print("CHANGES", json.dumps(changes))
peak = about["peak"] * share // 100 - sum(about["offers"][name][4] * value for name, value in changes.items())
kept = about.get("kept", 0) if "limit=0;" not in os.environ.get("DRYSTONE_STANDIN", "") else 0
torch._sizes.update(reserved=peak + kept << 20, allocated=peak << 20, requested=peak << 20)
torch.use()
for name in changes:
    if name in about.get("fails", []):
        raise ValueError(f"{name} is not for this program\\nand more")
"""
LAYERS = [list(range(1, 33)), "checkpoint {} of 32 layers", "same", "backward", 10, 1]
SWITCH = [[True], "one switch", "same", "any", 60, 0]
PIECES = [[2, 4, 8], "batch in {} pieces, {} times", "rows", "any", 50, 0]
EIGHT = [[1], "8-bit states", "other", "any", 200, 0]


def about(peak, offers, **more):
    return {"peak": peak, "offers": offers, **more}


CASES = {
    "fits": (about(200, {}), [], 0, "fits  200.00 MiB reserved at the peak, 69.", "not runs in"),
    "fits_by_retries": (about(260, {}, kept=50), [], 0, "fits  260.00 MiB"),
    "switch": (about(300, {"switch": SWITCH, "layers": LAYERS}), [], 0,
               "does not fit  it needs 300.00 MiB, and the card has 269.",
               "1 one switch 240.00 MiB 29.00 MiB 0 % same",
               "2 checkpoint 4 of 32 layers 260.00 MiB 9.00 MiB +4 % same",
               "drystone fit --apply 1 -- PROGRAM runs it so, by fit.json"),
    "both": (about(600, {"switch": SWITCH, "layers": LAYERS}), [], 0,
             "1 one switch + checkpoint 28 of",
             "measured, and not enough", "one switch 540.00 MiB 60.00 MiB"),
    "kinds": (about(400, {"eight": EIGHT, "pieces": PIECES, "layers": LAYERS}), [], 0,
              "1 checkpoint 14 of 32", "2 batch in 4 pieces, 4 times 200.00 MiB",
              "row means 3 8-bit states", "0 % other", "row means: the same numbers if"),
    "nothing": (about(1000, {"switch": SWITCH, "layers": LAYERS}), [], 1,
                "one switch + checkpoint 32 of 32 layers misses 351.",
                "nearest nothing that was tried is enough", "not --apply"),
    "no_offers": (about(1000, {}), [], 1, "nearest no change could be made"),
    "refused": (about(300, {"switch": SWITCH, "layers": LAYERS},
                      refused={"layers": "there are\x1b[31m no layers"}), [], 0, "1 one switch",
                "not possible checkpoint", "layers: layers: there are?[31m no layers", "not \x1b[31m no"),
    "not_offered": (about(300, {"layers": LAYERS}, refused={"micro": "it has \x1b no loader", "x": 7}),
                    [], 0, "1 checkpoint 4 of 32", "not possible micro: it has ? no loader", "not x:"),
    "refused_all": (about(900, {}, refused={"micro": "it has no loader"}), [], 1,
                    "no change could be made", "not possible micro: it has no loader"),
    "fails": (about(300, {"switch": SWITCH, "layers": LAYERS}, fails=["switch"]), [], 0,
              "1 checkpoint 4 of 32 layers", "not possible one switch: ValueError: switch is not for this program (", "p.py:", "not more"),
    "fails_as_it_is": (about(300, {"switch": SWITCH}, told={"offers": [7]}), [], 3,
                       "told change 1 in a form that is not known"),
    "no_package": (about(300, {}, told=["strange"]), [], 3, "told no changes that can be made"),
    "link": (about(300, {"switch": SWITCH}, link=1 << 20), [], 0, "work link numbers",
             "0 % 1.00 MiB same", "link: bytes that it copies"),
    "speeds": (about(300, {"switch": SWITCH}, link=1 << 20), ["--card", "speed.json"], 0,
               "work link step numbers", "0 % 1.00 MiB 2.00 s same", "step: by the card's speeds; as it is, 1.00 s"),
    "half_a_speed": (about(300, {"layers": LAYERS}, link=1 << 20), ["--card", "half.json"], 0,
                     "+4 % 1.00 MiB ? same"),
    "few_runs": (about(600, {"switch": SWITCH, "layers": LAYERS}), ["--runs", "2"], 1,
                 "2 runs in", "not checkpoint"),
    "json": (about(300, {"switch": SWITCH}), ["--json"], 0, '"schema": "drystone.fit/1"',
             '"change": "one switch"', '"changes": { "switch": true }'),
    "rank": (about(300, {}), ["--world-size", "2", "--rank", "2"], 2, "less than --world-size"),
    "card": (about(300, {}), ["--card", "nothing"], 2, "no card of"),
    "folder": (about(300, {}), ["-o", "tmp"], 4, "tmp: cannot write: Is a directory"),
    "early": (about(300, {}, early=True), [], 3, "ValueError: before any GPU",
              "before it used a GPU"),
    "options": (about(200, {}, options={"steps": 7, "patience": 9, "values": True,
                                        "world_size": 4}, devices=3),
                ["--steps", "7", "--patience", "9", "--values", "--world-size", "4", "--rank", "2",
                 "--gpus", "3"], 0, "fits", "200.00 MiB reserved"),
    "words": (about(400, {"layers": LAYERS}, words=["{B}", "{N}"]),
              ["--vary", "B=100,80,60,40", "--vary", "N=1,2,3,4"], 0,
              "1 checkpoint 14 of 32 layers 260.00 MiB", "2 B=60 N=3 240.00 MiB", "other"),
    "words_alone": (about(1000, {}, words=["{B}"]), ["--vary", "B=100,80"], 1,
                    "nothing that was tried is enough; B=80 misses 531."),
    "uneven": (about(400, {}, words=["{B}", "{N}"]), ["--vary", "B=100,80", "--vary", "N=1,2,3"],
               2, "--vary N: expected 2 values, as B has; it has 3"),
    "broken": (about(400, {}, words=["{B}"]), ["--vary", "B=100,\udcff0"], 3,
               "--vary B=100,?0: a value is not UTF-8 text", "not runs in"),
    "control": (about(400, {}, words=["{B}", "{N}"]), ["--vary", "B=100,60", "--vary", "N=1,2\x7f3"],
                0, "1 B=60 N=2?3 240.00 MiB"),
    "no_place": (about(400, {}), ["--vary", "B=100,80"], 2, "no word of the program has {B}"),
    "no_file": (about(300, {}), ["--apply", "1"], 3, "fit.json: cannot open"),
}
WORDS = {  # behind the case "words", in its folder
    "second": (["--apply", "2"], 0, "PIECES 3 CHANGES {}", "drystone: with B=60 N=3"),
    "first": (["--apply", "1"], 0, 'PIECES 1 CHANGES {"layers": 14}'),
    "patch": (["--patch", "2"], 0, "# start the program with B=60 N=3", "not +++"),
    "vary": (["--apply", "2", "--vary", "B=1,2"], 2, "--vary is for a search"),
}
NONE = {"first": (["--apply", "1"], 3, "fit.json: no change 1: it has 0 that fit")}
CONTROL = {"first": (["--apply", "1"], 0, "PIECES 2\x7f3 CHANGES {}", "drystone: with B=60 N=2?3")}
APPLIED = {  # behind the case "switch", in its folder
    "second": (["--apply", "2"], 0, 'CHANGES {"layers": 4}',
               "drystone: with checkpoint 4 of 32 layers"),
    "first": (["--patch", "1"], 0, '+drystone.fit.apply({"switch": True})  # one switch'),
    "third": (["--apply", "3"], 3, "no change 3: it has 2 that fit"),
    "foreign": (["--apply", "1", "-o", "small.json"], 3, "small.json: not a file of drystone fit"),
    "strange": (["--apply", "1", "-o", "p.py"], 3, "p.py:"),
    "broken": (["--apply", "1", "-o", "broken.json"], 3,
               "broken.json: fits_with, row 1: expected changes and a text"),
    "patch": (["--patch", "2"], 0, """by hand, in words of the program's own:
                  layers(4)  # 1
                  # 2
              --- p.py
              +++ p.py
              @@ -1,4 +1,6 @@
              +import drystone.fit
              +drystone.fit.apply({"layers": 4})  # checkpoint 4 of 32 layers
               import json, os, sys, torch"""),
    "patch_and_apply": (["--patch", "2", "--apply", "2"], 2, "expected one of them"),
    "with_json": (["--apply", "1", "--json"], 2, "--json is for a search"),
}
FOLLOWING = {"switch": APPLIED, "fits": NONE, "words": WORDS, "control": CONTROL}


def judge(process, status, words):
    """None, or what is wrong."""
    said = "".join(process.communicate(timeout=120))
    text = " ".join(said.split())
    wrong = [word for word in words if (word[4:] in said if word[:4] == "not " else
                                        " ".join(word.split()) not in text)]
    if process.returncode == status and not wrong:
        return None
    return f"status {process.returncode}, expected {status}; {wrong}\n{said}"


def run(name, case, top):
    folder = top / name
    folder.mkdir()
    (folder / "tmp").mkdir()
    fake_torch.make(folder, "2.9.0", "'12.8'", {"libtorch_cuda.so": library.read_bytes()}, TORCH)
    (folder / "small.json").write_text('{"name": "small", "usable_bytes": 1086324736}')
    small = {"name": "small", "usable_bytes": 1086324736, "operations_per_second": 100}
    (folder / "half.json").write_text(json.dumps(small))
    (folder / "speed.json").write_text(json.dumps({**small, "link_bytes_per_second": 1 << 20}))
    (folder / "broken.json").write_text('{"schema": "drystone.fit/1", "fits_with": [{"changes": 7}]}')
    (folder / "p.py").write_text(PROGRAM)
    (folder / "drystone/fit").mkdir(parents=True)
    (folder / "drystone/__init__.py").write_text("")
    (folder / "drystone/fit/__init__.py").write_text(FIT)
    memory, options, status, *words = case
    card = [] if "--card" in options or "--apply" in options else ["--card", "small.json"]
    program = ["p.py", json.dumps(memory), *memory.get("words", [])]

    def start(options):
        return fake_torch.start(tool, folder, program, folder / "tmp", options, "", "fit")

    wrong = judge(start(card + options), status, words)
    if any((folder / "tmp").iterdir()):
        wrong = f"files are left; {wrong}"
    for label, (options, status, *words) in FOLLOWING.get(name, {}).items():
        found = judge(start(options), status, words)
        wrong = wrong or found and f"{label}: {found}"
    return wrong


fake_torch.run_cases("answers", {name: case for name, case in CASES.items()
                                 if not chosen or name in chosen}, run)
