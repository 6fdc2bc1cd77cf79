# SPDX-License-Identifier: Apache-2.0
"""Simulate a large fleet, to see its time's parts: `python3 bench/fleet_sim.py [RANKS [MB]]`

10,000 ranks left 500 MB each (defaults); 64 nodes read them under MPI as tool/work does. A thread
asks the first process for a file, reads and judges it, and sends a row. The first process serves
one message after the other. Costs of a byte, a row and a message are those measured below. A
storage gives its bandwidth to all who read, in equal shares, and a node has one of its own.

Simulated: files of differing length (log-normal, a fifth), the heaviest first; the wait for
the first process; the tail, when files are fewer than threads. Not simulated: a storage that is slow
for a while, nodes that fail.
"""
import heapq
import math
import random
import sys

SEED = 20261127
NODES = 64
# Measured on one core of an Intel Xeon, 2026-11-27: see doc/benchmarks.md, "A fleet".
CORE_MB_S = 650.0  # a file of 500 MB read, explained, and made a row
JUDGE_ROW_S = 74e-6  # rows read back and judged, of 512 and 2,048
MESSAGE_S = 85e-6  # both ends of one, of 2,048 files of 0.1 MB by two ranks and by two threads
NAP_S = 250e-6  # it sleeps half a millisecond while nobody asks
SEARCH_S = 4.0  # settings replayed on eight ranks that decide, side by side
LINK_MB_S = 12500.0  # a node's own, 100 Gbit/s


class Storage:
    """All readers get the same share, so one number, bytes that each has had, tells all ends."""

    def __init__(self, bandwidth):
        self.bandwidth = bandwidth
        self.had = 0.0  # MB that a reader since the beginning would have had
        self.now = 0.0
        self.ends = []  # (had at the end, thread)

    def rate(self, threads_a_node):
        count = len(self.ends)
        if not count:
            return 0.0
        share = min(self.bandwidth / count, LINK_MB_S / min(threads_a_node, count))
        return min(CORE_MB_S, share)

    def forward(self, until, threads_a_node):
        self.had += (until - self.now) * self.rate(threads_a_node)
        self.now = until

    def next_end(self, threads_a_node):
        if not self.ends:
            return math.inf
        return self.now + max(0.0, self.ends[0][0] - self.had) / self.rate(threads_a_node)


def simulate(sizes, threads_a_node, bandwidth):
    """Seconds until the last row is at the first process, and how long that one was busy."""
    files = sorted(sizes, reverse=True)
    storage = Storage(bandwidth)
    # Asks of threads as they come to the first process.
    asks = [(NAP_S, thread) for thread in range(NODES * threads_a_node)]
    heapq.heapify(asks)
    given, free_at, busy, last_row = 0, 0.0, 0.0, 0.0
    starts = []  # (time, thread, MB): told what to read
    while asks or storage.ends or starts:
        end = storage.next_end(threads_a_node)
        ask = max(asks[0][0], free_at) if asks else math.inf
        start = starts[0][0] if starts else math.inf
        now = min(end, ask, start)
        storage.forward(now, threads_a_node)
        if now == start:
            _, thread, size = heapq.heappop(starts)
            heapq.heappush(storage.ends, (storage.had + size, thread))
        elif now == end:
            _, thread = heapq.heappop(storage.ends)
            last_row = now + MESSAGE_S
            free_at, busy = max(free_at, now) + MESSAGE_S, busy + MESSAGE_S
            heapq.heappush(asks, (now + NAP_S, thread))
        else:
            _, thread = heapq.heappop(asks)
            free_at, busy = now + MESSAGE_S, busy + MESSAGE_S
            if given < len(files):
                heapq.heappush(starts, (free_at, thread, files[given]))
                given += 1
    return last_row, busy


def main():
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 500.0
    chance = random.Random(SEED)
    sizes = [megabytes * chance.lognormvariate(-0.02, 0.2) for _ in range(ranks)]
    total = sum(sizes)
    print(f"{ranks:,} files, {total / 1e6:.2f} TB, {NODES} nodes; seconds\n")
    print(f"{'storage GB/s':>12} {'threads':>8} {'reading':>8} {'floor':>7} {'of it':>6} "
          f"{'messages':>9} {'judging':>8} {'settings':>9} {'all':>7}")
    for bandwidth in (10, 50, 200, 1000):
        for threads in (8, 32):
            reading, busy = simulate(sizes, threads, bandwidth * 1000.0)
            cores = total / (CORE_MB_S * NODES * threads)
            floor = max(total / (bandwidth * 1000.0), total / (LINK_MB_S * NODES), cores)
            judging = JUDGE_ROW_S * ranks
            print(f"{bandwidth:12} {NODES * threads:8} {reading:8.1f} {floor:7.1f} "
                  f"{floor / reading:6.0%} {busy:9.2f} {judging:8.2f} {SEARCH_S:9.1f} "
                  f"{reading + judging + SEARCH_S:7.1f}")


if __name__ == "__main__":
    main()
