# SPDX-License-Identifier: Apache-2.0
"""The driver's own memory for a captured graph, by its number of kernel nodes."""
import time

import part


def measure(torch, count):
    """Capture, replay and drop a graph of `count` kernels; bytes are beside the allocator's."""
    def beside():
        torch.cuda.synchronize()
        return part.used() - torch.cuda.memory_reserved()

    x, graph = torch.zeros(1024, device="cuda"), torch.cuda.CUDAGraph()
    before, begin = beside(), time.monotonic()
    with torch.cuda.graph(graph):
        for _ in range(count):
            x.add_(1)
    row = {"nodes": count, "capture_s": time.monotonic() - begin, "captured": beside() - before}
    begin = time.monotonic()
    graph.replay()
    row["replayed"] = beside() - before
    row["first_s"] = time.monotonic() - begin
    begin = time.monotonic()
    graph.replay()
    torch.cuda.synchronize()
    row["second_s"] = time.monotonic() - begin
    graph.reset()
    row["dropped"] = beside() - before
    return row


def main():
    given = part.begin(__doc__)
    import torch
    torch.zeros(1024, device="cuda").add_(1)
    measure(torch, 1)  # what the first graph of all takes is none of the others'
    rows = [measure(torch, count) for count in ((10, 100) if given.quick
                                                else (10, 100, 1000, 10000))]
    for row in rows:
        part.put(**row)
    part.say(f"KiB {', '.join(str(row['replayed'] // 1024) for row in rows)} "
             f"for {rows[0]['nodes']} to {rows[-1]['nodes']}")


main()
