# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like a PyTorch, for tests of `drystone dry-run` that need none."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile


def make(folder, version, cuda, libraries, text=""):
    (folder / "torch/lib").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text(text)
    (folder / "torch/version.py").write_text(f"__version__ = '{version}'\ncuda = {cuda}\n")
    for name, data in libraries.items():
        (folder / "torch/lib" / name).write_bytes(data)


def start(tool, folder, words, temporary, options=(), site="-S", command="dry-run"):
    """Start a dry run with a Python in `folder`; -S has it without the packages of this machine,
    and without the hook of the dry run.
    """
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    env.update(PYTHONPATH=str(folder), TMPDIR=str(temporary), PYTHONNOUSERSITE="1")
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" {site} "$@"\n')
    python.chmod(0o755)
    return subprocess.Popen([tool, command, *options, "--", python, *words], env=env, cwd=folder,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_cases(what, cases, run):
    """Run each case, run(name, case, folder), and exit: it returns what is wrong, or None."""
    failed = 0
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = {name: pool.submit(run, name, case, pathlib.Path(top))
                for name, case in cases.items()}
        for name, done in runs.items():
            wrong = done.result()
            failed += wrong is not None
            if wrong:
                print(f"{name}: {wrong}", flush=True)
    print(f"{len(cases)} {what}, {failed} wrong")
    sys.exit(1 if failed else 0)
