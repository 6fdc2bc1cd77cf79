#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every program of a battery runs to its end without a GPU, and its snapshot replays exactly.

    run.py TOOL [--core] [--allocator torch|paged] [--keep FOLDER] [NAME...]

The programs lie in programs/, by kind, and have names of their own. A line of the text at their
head says what differs from a plain run:

    card: NAME, gpus: N, conf: STR   what it runs on
    options: WORDS                   further options of the command
    expect: fits, oom or unknown     how it ends
            refused                  a serving engine says that memory is too small
            none                     this allocator of PyTorch's makes no snapshot
    reserved: BYTES                  the peak
    unseen: TEXT                     what was not run, as the first line says it
    engine: TEXT                     what a serving engine says of its memory
    assumes: TEXT                    what its figures depend on
    chance: True                     its steps differ in size by chance
    notes: TEXT                      in what is noted of the run
    guesses: LINE WHAT, LINE WHAT    the lines that are named as guesses; or none
    peak: PASS, LINE                 when and where memory peaked
    step: N                          of the peak
    owners: MODULE WEIGHTS GRADIENTS OPTIMIZER MADE, ...  some of what modules own then
    convolutions: half or float      their numbers, or None
    kernels: lacking                 a torch of CUDA 13 has none for the card
    before: kept or changed          its argument is a file; the run leaves it, or does not
    check: addresses                 the snapshot does not tell why segments were given back
    needs: MODULE, MODULE            it is skipped, and said to be, where one is missing
                                     (requirements.txt has them all)
    with: WORDS                      between Python and the program's path
    rules: torch                     it asserts where PyTorch's rules put memory, so it is skipped,
                                     and said to be, with --allocator paged

With --allocator the programs run with Drystone's allocator in PyTorch (python/drystone/torch), not
with its own. Snapshots of placement torch must replay as PyTorch's do; for paged, the programs
must run to the same end. Those with an allocator of their own ("expect: none") are left out.

PyTorch with CUDA is $DRY_TEST_TORCH (made by scripts/get_torch.py); without it all are skipped.
"""
import argparse
import importlib.machinery
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from needs import find_torch

HERE = pathlib.Path(__file__).resolve().parent
HOOK = HERE.parents[1] / "python/drystone/torch/hook"
OUTCOMES = {"fits": (0, True), "oom": (1, False), "unknown": (3, None), "none": (0, True),
            "refused": (1, False)}
# Those that every release of PyTorch is tried with: each stands for a part of CUDA's libraries.
CORE = ("adamw_ways", "attention", "batch_halving", "checkpoint_ways", "convolutions", "ddp",
        "expandable", "fourier", "fsdp", "gpt_autocast", "graph_pools", "linear_algebra", "loader",
        "peers", "pinned", "profiler", "recurrent", "resnet", "sparse_tensors", "streams")

# These are about a library of CUDA's: they do the same whoever places the memory.
LIBRARIES = ("attention", "convolutions", "fourier", "linear_algebra", "recurrent",
             "sparse_tensors")


def read_head(path):
    """{"card": ..., "expect": ...} of a program."""
    head = path.read_text().split('"""')[1]
    return {"card": "h100-80", "expect": "fits",
            **dict(re.findall(r"^(card|gpus|conf|options|before|kernels|expect|reserved|unseen|check|"
                              r"peak|step|convolutions|owners|engine|assumes|chance|notes|guesses|needs|rules|with): (.*)$",
                              head, re.M))}


def find_missing(path, torch):
    """The first module that a program needs and the folder has not; None: it has all."""
    for name in re.split(r",\s*", read_head(path).get("needs", "")):
        if name and not importlib.machinery.PathFinder.find_spec(name, [str(torch)]):
            return name
    return None


def tell_engine(engine):
    return "none" if engine is None else (
        "{kv_tokens} tokens, {requests:.1f} requests, {weights_bytes} weights, {activation_bytes} "
        "activation, {outside_bytes} outside, {graph_bytes} graphs, "
        "{request_bytes} request, {asleep_bytes} asleep").format(**engine)


def judge(result, head, allocator):
    """None, or what is wrong with what the tool says."""
    fits = OUTCOMES[head["expect"]][1]
    if result["fits"] is not fits:
        return f"fits is {result['fits']}, expected {fits}"
    if "reserved" in head and int(head["reserved"]) != result["reserved_peak_bytes"]:
        return f"{result['reserved_peak_bytes']} bytes reserved, expected {head['reserved']}"
    if head.get("unseen", "None") not in str(result["unseen"]):
        return f"unseen is {result['unseen']}, expected {head.get('unseen')}"
    peak = "{pass}, {line}".format(**result["moment"] or {"pass": "none", "line": ""})
    if head.get("peak", peak) != peak:
        return f"the peak is in {peak}, expected {head['peak']}"
    step = str((result["moment"] or {}).get("step"))
    if head.get("step", step) != step:
        return f"the peak is in step {step}, expected {head['step']}"
    engine = tell_engine(result["engine"])
    if engine != head.get("engine", engine):
        return f"the engine says: {engine}"
    assumed = str((result["engine"] or {}).get("assumed"))
    if assumed != head.get("assumes", "None"):
        return f"the engine assumes: {assumed}"
    if allocator == "paged":
        return None
    if head["expect"] == "refused":
        refusals = [process["refusal"] for process in result["processes"] if process["refusal"]]
        return None if refusals else "no process has an engine's refusal"
    check = result["self_check"]
    exact = check["exact"] if "check" not in head else \
        check["addresses_matched"] == check["addresses"]
    if not exact or check["addresses"] == 0:
        return f"the snapshot does not replay exactly: {check}"
    main = result["processes"][0]
    if str(main["convolutions"]) != head.get("convolutions", str(main["convolutions"])):
        return f"its convolutions are {main['convolutions']}"
    if str(main["by_chance"]) != head.get("chance", "False"):
        return f"by chance: {main['by_chance']}"
    told = [" ".join(map(str, owner.values())) for owner in main["owners"]]
    unsaid = [one for one in head.get("owners", "").split(", ") if one and one not in told]
    if unsaid:
        return f"{unsaid} are not among the owners {told}"
    if "kernels" in head and int(main["cuda"].split(".")[0]) >= 13 and not main["no_kernels"]:
        return "torch is not said to lack kernels for the card"
    inexact = [p["rank"] for p in result["processes"]
               if "devices" in p and not p["exact"]]
    if "check" not in head and inexact:
        return f"snapshots of ranks {inexact} do not replay exactly"
    guesses = ", ".join(f"{one['line'].split(':')[-1].split()[0]} {one['what']}"
                        for process in result["processes"] for one in process["guesses"]) or "none"
    if guesses != head.get("guesses", guesses) or result["guessed"] is not (guesses != "none"):
        return f"guesses: {guesses}"
    notes = [note for process in result["processes"] for note in process["notes"]]
    is_told = any(head["notes"] in note for note in notes) if "notes" in head else not notes
    return None if is_told else f"notes: {notes}"


def run(tool, path, folder, torch, allocator):
    """None, or what is wrong."""
    head = read_head(path)
    snapshot = folder / f"{path.stem}.pickle"
    env = {key: value for key, value in os.environ.items()
           if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD")}
    env.update(PYTHONPATH=str(torch), OMP_NUM_THREADS="1", DRYSTONE=str(tool))
    if allocator:
        env.update(DRYSTONE_ALLOCATOR=allocator, PYTHONPATH=f"{HOOK}:{torch}")
    if "conf" in head:
        env["PYTORCH_CUDA_ALLOC_CONF"] = head["conf"]
    words = [tool, "dry-run", "--json", "--card", head["card"], "--gpus", head.get("gpus", "1"),
             "--output", snapshot, *head.get("options", "").split(), "--", sys.executable,
             *head.get("with", "").split(), path]
    older = folder / f"{path.stem}.older/best.pt"
    if "before" in head:
        older.parent.mkdir()
        older.write_text("of an earlier run\n")
        words.append(older)
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    status = OUTCOMES[head["expect"]][0]
    end = "\n".join(done.stderr.splitlines()[-12:])
    if done.returncode != status:
        return f"exit status {done.returncode}, expected {status}\n{end}"
    if "before" in head:
        is_kept = older.is_file() and older.read_bytes() == b"of an earlier run\n"
        files = [name for process in json.loads(done.stdout)["processes"]
                 for name in process["files"]]
        if is_kept != (head["before"] == "kept") or is_kept != (str(older) in files):
            return f"the older file is {'' if is_kept else 'not '}kept, told: {files}"
    if head["expect"] == "none":
        result = json.loads(done.stdout)
        is_told = result["snapshot"] is None and result["allocated_peak_bytes"] > 0
        return None if is_told else f"expected no snapshot, and peaks: {done.stdout}"
    if head["expect"] == "refused":
        return judge(json.loads(done.stdout), head, allocator)
    shown = subprocess.run([tool, "info", snapshot], capture_output=True, check=False)
    if shown.returncode != 0:
        return f"drystone info refuses the snapshot: {shown.stderr}"
    return judge(json.loads(done.stdout), head, allocator)


def choose(given, torch):
    """The programs that run, and how many are skipped, which is said."""
    programs = sorted((HERE / "programs").rglob("*.py"), key=lambda path: path.stem)
    names = CORE if given.core else given.names
    if given.core and given.allocator:
        names = [name for name in CORE if name not in LIBRARIES]
    chosen, skipped = [], 0
    for path in programs:
        if names and path.stem not in names:
            continue
        missing = find_missing(path, torch)
        if missing:
            print(f"SKIPPED: {path.stem}: no {missing} in DRY_TEST_TORCH's folder", flush=True)
            skipped += 1
        elif given.allocator == "paged" and "rules" in read_head(path):
            print(f"SKIPPED: {path.stem}: it asserts where PyTorch's rules put memory", flush=True)
            skipped += 1
        elif not (given.allocator and read_head(path)["expect"] == "none"):
            chosen.append(path)
    return chosen, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--allocator", choices=["torch", "paged"])
    parser.add_argument("--keep", help="snapshots go to this folder and stay")
    given = parser.parse_args()
    tool = pathlib.Path(given.tool).resolve()
    torch = find_torch()
    chosen, skipped = choose(given, torch)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(given.keep or temporary).resolve()
        folder.mkdir(exist_ok=True)
        for path in chosen:
            wrong = run(tool, path, folder, torch, given.allocator)
            print(f"{path.stem}: {wrong or 'ok'}", flush=True)
            failed += wrong is not None
    print(f"{len(chosen) + skipped} programs, {failed} wrong, {skipped} skipped")
    sys.exit(1 if failed else 0)


main()
