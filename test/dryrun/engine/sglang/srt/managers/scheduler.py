# SPDX-License-Identifier: Apache-2.0
"""The scheduler of a rank, a process of its own. If one fails, the launcher kills them all."""
import os
import pathlib
import signal
import time

from ..model_executor.model_runner import ModelRunner

LATE_S = 1  # by which each rank is behind the one before


class Request:
    def __init__(self, asked):
        self.rid, self.prompt = asked.rid, len(asked.input_ids)
        self.left = asked.sampling_params.max_new_tokens

    def finished(self):
        return self.left == 0


class Scheduler:
    def __init__(self, server_args, rank):
        assert (pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64").exists()
        time.sleep(LATE_S * rank)
        self.server_args, self.runner, self.running = server_args, ModelRunner(server_args, rank), []

    def recv_requests(self):
        return []

    def stream_output(self, requests, return_logprob):
        assert not return_logprob

    def run_event_loop(self):
        while True:
            for asked in self.recv_requests():
                self.running.append(Request(asked))
                self.runner.run(self.running[-1].prompt)
            for one in self.running:
                self.runner.run(1)
                one.left -= 1
            self.stream_output(self.running, False)
            self.running = [one for one in self.running if not one.finished()]


def run_scheduler_process(server_args, rank, parent):
    try:
        Scheduler(server_args, rank).run_event_loop()
    except Exception as error:
        print(f"Scheduler hit an exception: {error}", flush=True)
        os.kill(parent, signal.SIGQUIT)
