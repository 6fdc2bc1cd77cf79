#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's pickle.load on a file, globals refused: cpython_load.py FILE RUNS

Prints a line of JSON like bench_trace's. Every run is a child of its own.
"""
import json
import multiprocessing
import os
import pickle
import resource
import sys
import time


class Safe(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"global {module}.{name}")


def load(path, queue):
    begin = time.monotonic()
    with open(path, "rb") as file:
        snapshot = Safe(file).load()
    seconds = time.monotonic() - begin
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    queue.put((seconds, sum(map(len, snapshot["device_traces"])), rss))
    queue.close()
    queue.join_thread()
    os._exit(0)  # taking a million objects apart is not what is measured


def main():
    path, runs = sys.argv[1], int(sys.argv[2])
    seconds = []
    for _ in range(runs):
        queue = multiprocessing.Queue()
        child = multiprocessing.Process(target=load, args=(path, queue))
        child.start()
        taken, events, rss = queue.get()
        child.join()
        seconds.append(taken)
    print(json.dumps({"what": "cpython", "seconds": seconds, "events": events,
                      "bytes": os.path.getsize(path), "rss_bytes": rss}))


if __name__ == "__main__":
    main()
