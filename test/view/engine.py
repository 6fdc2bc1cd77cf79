#!/usr/bin/env python3
"""The engine of drystone.html: engine.py SOURCE TOOL MAKE_CASES. Skips loudly without a compiler for WebAssembly or node.

It is made from its sources. Its answers are held against the command's, byte for byte: on recordings, on cases that the
tests make, and on broken files. Then the page is used in a browser, alone and as `view --output` writes it.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
source, tool, make_cases = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
viewer = source / "viewer"
parts = pathlib.Path(os.environ.get("DRY_TEST_PAGE", source / "build-page"))
traces = pathlib.Path(os.environ["DRY_TEST_TRACES"])
MUTANTS, SEED = 60, 20261130


def skip(why):
    print(f"SKIPPED: the engine of the page is untested: {why}")
    sys.exit(SKIP)


def run(*command, **variables):
    print("+", *command[:4], flush=True)
    subprocess.run([str(word) for word in command], cwd=viewer, check=True, env={**os.environ, **variables})


def list_recordings():
    recordings = sorted(path for path in traces.glob("*/*") if path.is_file())
    if not recordings:
        print(f"SKIPPED: no recordings in {traces}", flush=True)
    return recordings


def list_cases(folder):
    made = folder / "cases"
    made.mkdir()
    subprocess.run([make_cases, made], check=True, stdout=subprocess.DEVNULL)
    return sorted(path for path in made.iterdir() if path.is_file())


def list_broken(folder, whole):
    """The corpora of all fuzzers, and mutants of a whole file: some bytes of each are others."""
    dice = random.Random(SEED)
    for number in range(MUTANTS):
        mutant = bytearray(whole.read_bytes())
        for _ in range(dice.choice((1, 3, 20))):
            mutant[dice.randrange(len(mutant))] = dice.randrange(256)
        (folder / f"mutant-{number}.pickle").write_bytes(mutant)
    return [*sorted((source / "test/corpus").glob("*/*")), *sorted(folder.glob("mutant-*"))]


def write_whole(folder, page, recording):
    """Have a copy of the command write a page with the engine, which it finds beside itself."""
    shutil.copy(tool, folder / "drystone")
    shutil.copy(source / "viewer/page.html", folder / "drystone.html")  # a page without the engine is passed over
    subprocess.run([folder / "drystone", "view", "-o", folder / "plain.html", recording], check=True)
    shutil.copy(page, folder / "drystone.html")
    subprocess.run([folder / "drystone", "view", "-o", folder / "whole.html", recording], check=True)
    return folder / "whole.html"


if not shutil.which("node"):
    skip("node is not installed")
if not (viewer / "node_modules/esbuild").exists():
    skip("run `npm ci --ignore-scripts` in viewer first")
if not (parts / "ready").exists():
    skip(f"run `python3 wasm/make.py get {parts.name}` first")
with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    page = folder / "page.html"
    run(sys.executable, source / "wasm/make.py", "build", parts, page)
    recordings, cases = list_recordings(), list_cases(folder)
    recording = next((path for path in recordings if path.name == "compile-context.pickle"), cases[0])
    if recordings:
        run("node", "test/engine.mjs", parts / "drystone.wasm", tool, *recordings)
    run("node", "test/engine.mjs", parts / "drystone.wasm", tool, *cases, *list_broken(folder, recording), QUICK="1")
    if not os.environ.get("CHROMIUM") and not any(map(shutil.which, ("chromium", "google-chrome"))):
        skip("there is no Chromium")
    run("node", "--test", "--test-timeout=300000", "test/alone.mjs", PAGE=str(page), RECORDING=str(recording),
        WHOLE=str(write_whole(folder, page, recording)))
