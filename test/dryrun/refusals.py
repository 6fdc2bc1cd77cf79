#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input of `drystone dry-run`, without a PyTorch: refusals.py TOOL SMALL_LIBRARY

Folders that look like a torch stand in for it. SMALL_LIBRARY is any shared library. Each run must
end with its own status and line, and leave nothing in its temporary folder.
"""
import pathlib
import signal
import sys
import tempfile
import time

import fake_torch

tool, library = (pathlib.Path(name).resolve() for name in sys.argv[1:3])


def check(name, status, expected, process, temporary):
    _, errors = process.communicate(timeout=60)
    left = sorted(path.name for path in temporary.iterdir())
    if process.returncode != status or expected not in errors or left:
        print(f"{name}: status {process.returncode}, left {left}\n{errors}"
              f"expected {status} and: {expected}")
        return 1
    return 0


def main():
    good = library.read_bytes()
    cases = [
        ("no_torch", None, 3, "this Python has no torch"),
        ("cpu", ("2.9.0+cpu", "None", {}), 3, "torch 2.9.0+cpu was built without CUDA"),
        ("rocm", ("2.9.0", "'12.8'", {"libtorch_hip.so": good}), 3, "no libtorch_cuda.so"),
        ("broken", ("2.9.0", "'12.8'", {"libtorch_cuda.so": b"garbage"}), 3, "byte 0"),
        ("cut", ("2.9.0", "'12.8'", {"libtorch_cuda.so": good[:70]}), 3, "libtorch_cuda.so: "),
        ("unused", ("2.9.0", "'12.8'", {"libtorch_cuda.so": good}), 3,
         "ended with status 7 before it used a GPU"),
    ]
    wrong = 0
    with tempfile.TemporaryDirectory() as top:
        for name, torch, status, expected in cases:
            folder, temporary = pathlib.Path(top) / name, pathlib.Path(top) / f"{name}.tmp"
            folder.mkdir()
            temporary.mkdir()
            if torch:
                fake_torch.make(folder, *torch)
            process = fake_torch.start(tool, folder, ["-c", "raise SystemExit(7)"], temporary)
            wrong += check(name, status, expected, process, temporary)
        # the last one's torch again, and a program that does not end by itself
        for number in (signal.SIGINT, signal.SIGTERM):
            program = "import time; open('begun', 'w'); time.sleep(60)"
            process = fake_torch.start(tool, folder, ["-c", program], temporary)
            while not (folder / "begun").exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(number)
            wrong += check(number.name, 130, "interrupted after", process, temporary)
            (folder / "begun").unlink()
    sys.exit(1 if wrong else 0)


main()
