# SPDX-License-Identifier: Apache-2.0
"""Start a scheduler for each rank, and wait for what never comes."""
import multiprocessing
import os
import signal
import types

from .srt.managers.scheduler import run_scheduler_process


def launch(**words):
    args = types.SimpleNamespace(load_format="auto", dp_size=1, pp_size=1,
                                 **{"tp_size": 1, "context_length": 4096, **words})
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=run_scheduler_process, args=(args, rank, os.getpid()))
             for rank in range(args.tp_size)]

    def kill(*_):
        for one in ranks:
            one.kill()
        os.kill(os.getpid(), signal.SIGKILL)

    signal.signal(signal.SIGQUIT, kill)
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
