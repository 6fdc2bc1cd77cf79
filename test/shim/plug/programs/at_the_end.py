# SPDX-License-Identifier: Apache-2.0
"""A process ends with tensors alive, and so do its forks and its threads."""
import os
import threading
import time

import torch

import drystone.torch as dt

dt.enable(seam="pluggable")
kept = [torch.ones(1 << 20, device="cuda") for _ in range(10)]
child = os.fork()
if child == 0:
    kept.clear()  # nothing of it is the child's to free
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
kept.append(kept[0] + 1)


runs = threading.Event()


def forever():
    while True:
        torch.empty(1 << 16, device="cuda")
        runs.set()
        time.sleep(0.001)


threading.Thread(target=forever, daemon=True).start()
runs.wait()
graph = torch.cuda.CUDAGraph()
