# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like a PyTorch, for tests of `drystone dry-run` that need none."""
import os
import subprocess
import sys


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
