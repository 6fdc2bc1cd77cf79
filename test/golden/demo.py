#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`drystone demo` shows the main job, and what commands say of its recordings: demo.py TOOL"""
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

tool = pathlib.Path(sys.argv[1]).resolve()


def run(*args, code=0, **variables):
    done = subprocess.run([tool, *args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, **variables})
    if done.returncode != code:
        sys.exit(f"{args}: {done.returncode}: {done.stderr}")
    return done.stdout


def answer(word, *args):
    """Run on a terminal, and type `word`."""
    ours, its = pty.openpty()
    with subprocess.Popen([tool, *args], stdin=its, stdout=its, stderr=its) as running:
        os.close(its)
        os.write(ours, word)
        try:
            while os.read(ours, 4096):
                pass
        except OSError:
            pass  # the other end is closed
    os.close(ours)
    return running.returncode


def check_job(folder):
    """An OOM, its verdict, the change, the proof, the page."""
    path, page = folder / "oom.pickle", folder / "oom.html"
    text = run("demo", "-o", path)
    for said in ("OUT OF MEMORY", "VERDICT  fragmentation", str(page),
                 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (replayed: gets past"):
        assert said in " ".join(text.split()).replace("VERDICT ", "VERDICT  "), (said, text)
    rows = {line.split()[0]: line for line in text.splitlines() if "runs " in line}
    assert "runs out of memory" in rows["default"], text
    assert "runs to its end" in rows["expandable_segments:True"], text
    assert "OUT OF MEMORY" in run("explain", path, code=1)
    run("view", path, "-o", folder / "again.html")
    assert page.read_bytes() == (folder / "again.html").read_bytes(), "another page"


def check_width():
    """No line is wider than the terminal; a long name alone may be."""
    for width in 60, 80, 132:
        text = run("demo", "-y", "-o", "w.pickle", COLUMNS=str(width))
        wide = [line for line in text.splitlines() if len(line) > width]
        assert not wide, (width, wide)


def check_overwrite(folder):
    """A file that is there is replaced by --yes or a yes alone."""
    for name in "kept.pickle", "kept.html":
        path = folder / name
        path.write_text("mine\n")
        run("demo", "-o", folder / "kept.pickle", code=2)
        assert answer(b"n\n", "demo", "-o", folder / "kept.pickle") == 1
        assert path.read_text() == "mine\n", name
        assert answer(b"y\n", "demo", "-o", folder / "kept.pickle") == 0
        assert path.stat().st_size > 1000, name
        for made in folder.glob("kept.*"):
            made.unlink()
    run("demo", "-o", folder / "kept.pickle")
    run("demo", "--yes", "-o", folder / "kept.pickle")


def check_recommend(path):
    """A loss is told of nothing that was not searched to its smallest device."""
    args = ["sweep", path, "--capacity", "40GiB", "--without", "expandable"]
    told = json.loads(run(*args, "--json"))
    step = told["capacity_step_bytes"]
    for row in told["candidates"]:
        gain = row["gain_bytes"]
        if gain is not None and gain < 0:
            assert row["runs_on_bytes"] - row["fails_on_bytes"] <= step, row
    text = run(*args)
    assert "<40.00 GiB" not in text and "+26" not in text, text
    assert "0 instead of 0" not in text, text


def check_steps(path):
    """Every event is in one step."""
    told = json.loads(run("steps", path, "--json"))
    assert sum(s["events"] for s in told["steps"]) == told["events"], told["steps"]


with tempfile.TemporaryDirectory() as name:
    os.chdir(name)
    folder = pathlib.Path(".")
    check_job(folder)
    check_width()
    check_overwrite(folder)
    text = run("demo", "--capacity", "24GiB", "-o", "run.pickle")
    assert "runs out" not in text and "nothing failed" in text, text
    check_recommend("run.pickle")
    check_steps("run.pickle")
    assert run("demo", "-o", "none/run.pickle", code=4) == ""
    assert run("demo", "-o", "-", code=2) == ""
