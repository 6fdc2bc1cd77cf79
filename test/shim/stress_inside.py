# SPDX-License-Identifier: Apache-2.0
"""Threads, streams, graphs, pools, forks, exceptions and full devices, against a model.

    stress_inside.py SECONDS SEED

Each thread does what a random number says, with tensors of its own. The model knows every tensor
that lives: no two may overlap. At quiet moments, when all threads wait, PyTorch's statistics and
its snapshot must say what the model says. After all is freed nothing may be left but what a first
graph left. The process then ends by itself, with tensors, a graph and a pool alive.
"""
import bisect
import gc
import os
import pickle
import random
import sys
import threading
import time
import warnings

import torch

THREADS = 4
MIB = 1 << 20
PLACEMENT = os.environ.get("DRYSTONE_ALLOCATOR")
LIVE_MAX = 60  # tensors a thread
STEPS = 150  # of a thread, between quiet moments


class Model:
    """The tensors that live: their addresses are sorted, and their sizes known."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begins, self.sizes = [], {}

    def add(self, tensor):
        begin, size = tensor.data_ptr(), tensor.numel()
        with self.lock:
            at = bisect.bisect(self.begins, begin)
            if at > 0:
                before = self.begins[at - 1]
                assert before + self.sizes[before] <= begin, "a tensor begins in another one"
            if at < len(self.begins):
                assert begin + size <= self.begins[at], "a tensor ends in another one"
            self.begins.insert(at, begin)
            self.sizes[begin] = size

    def drop(self, tensor):
        """To be called before the tensor dies: its address may be another one's at once."""
        with self.lock:
            begin = tensor.data_ptr()
            del self.begins[bisect.bisect_left(self.begins, begin)]
            del self.sizes[begin]


class Numbers(torch.utils.data.Dataset):
    """What forked workers load; they inherit a tensor of the device, and let go of it."""

    def __init__(self):
        self.tensor = torch.empty(1 << 16, dtype=torch.uint8, device="cuda")

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.tensor = None
        return torch.full((1000,), index)


class Worker:
    def __init__(self, model, seed):
        self.model, self.random = model, random.Random(seed)
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        self.tensors, self.graphs, self.pools = [], [], []

    def size(self):
        return int(2 ** self.random.uniform(0, 26))

    def make(self, size=None):
        tensor = torch.empty(size or self.size(), dtype=torch.uint8, device="cuda")
        self.model.add(tensor)
        self.tensors.append(tensor)
        if len(self.tensors) > LIVE_MAX:
            self.free()

    def free(self):
        if self.tensors:
            tensor = self.tensors.pop(self.random.randrange(len(self.tensors)))
            self.model.drop(tensor)

    def make_on_stream(self):
        with torch.cuda.stream(self.random.choice(self.streams)):
            self.make()

    def record(self):
        if self.tensors:
            self.random.choice(self.tensors).record_stream(self.random.choice(self.streams))

    def use_pool(self):
        if not self.pools or self.random.random() < 0.3:
            self.pools.append(torch.cuda.MemPool())
        pool = self.random.choice(self.pools)
        with torch.cuda.use_mem_pool(pool):
            for _ in range(5):
                self.make()
                self.free()
        if len(self.pools) > 3:
            self.pools.pop(0)

    def raise_in_pool(self):
        try:
            with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
                self.make()
                raise KeyError("in the middle")
        except KeyError:
            pass

    def capture(self, is_failing=False):
        graph = torch.cuda.CUDAGraph()
        made = []
        try:
            with captures, torch.cuda.graph(graph, stream=self.streams[0],
                                            capture_error_mode="thread_local"):
                for _ in range(self.random.randrange(1, 6)):
                    made.append(torch.empty(self.size(), dtype=torch.uint8, device="cuda"))
                    torch.empty(self.size(), dtype=torch.uint8, device="cuda")
                if is_failing:
                    raise KeyError("in the middle of a capture")
        except KeyError:
            return
        for tensor in made:
            self.model.add(tensor)
        self.tensors += made
        graph.replay()
        self.graphs = [*self.graphs[-2:], graph]

    def raise_in_capture(self):
        self.capture(is_failing=True)

    def fill(self):
        """Take the device until it refuses, let go of half, and go on."""
        taken = []
        try:
            while True:
                taken.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as error:
            assert "CUDA out of memory" in str(error)
        del taken[::2]
        try:
            self.make(64 * MIB)
        except torch.OutOfMemoryError:
            pass  # another thread fills the device, too
        taken.clear()

    def look(self):
        torch.cuda.memory_stats()
        torch.cuda.reset_peak_memory_stats()
        snapshot = torch.cuda.memory._snapshot()
        pickle.dumps(snapshot["segments"][:3])

    def record_history(self):
        torch.cuda.memory._record_memory_history(max_entries=1000, stacks="python")
        self.make()
        self.free()
        torch.cuda.memory._record_memory_history(None)

    def step(self):
        weighted = [(self.make, 40), (self.free, 36), (self.make_on_stream, 12), (self.record, 8),
                    (self.use_pool, 2), (self.raise_in_pool, 1), (self.capture, 2),
                    (self.raise_in_capture, 0.3), (self.fill, 0.3), (self.look, 1),
                    (torch.cuda.empty_cache, 1), (self.record_history, 0.3)]
        act = self.random.choices([one for one, _ in weighted], [part for _, part in weighted])[0]
        try:
            act()
        except torch.OutOfMemoryError:
            pass  # another thread fills the device

    def clear(self):
        while self.tensors:
            self.free()
        self.graphs.clear()
        self.pools.clear()


captures = threading.Lock()  # of graphs: PyTorch wants one at a time


def settle():
    """Nothing waits for a stream: a request looks at what does."""
    gc.collect()
    torch.cuda.synchronize()
    torch.empty(1, device="cuda")


def figures():
    stats = torch.cuda.memory_stats()
    return {"requested": stats["requested_bytes.all.current"],
            "blocks": stats["allocation.all.current"],
            "waiting": stats["active.all.current"] - stats["allocation.all.current"],
            "reserved": stats["reserved_bytes.all.current"]}


def check_quiet(model, base):
    """All threads wait: what PyTorch says is what the model says."""
    settle()
    now = figures()
    known = {"requested": sum(model.sizes.values()), "blocks": len(model.sizes)}
    # Placement paged looks at events when a request wants what waits for them.
    assert now["waiting"] == 0 or PLACEMENT == "paged", now
    more = {name: now[name] - base[name] - number for name, number in known.items()}
    assert more["blocks"] == 0, (now, base, known)
    assert more["requested"] > 0 if now["waiting"] else more["requested"] == 0, (now, base, known)
    segments = torch.cuda.memory_snapshot()
    total = sum(segment["total_size"] for segment in segments)
    # Placement paged has pages under no address as well.
    assert total <= now["reserved"] if PLACEMENT == "paged" else total == now["reserved"]
    blocks = {}
    for segment in segments:
        assert segment["total_size"] == sum(block["size"] for block in segment["blocks"])
        blocks.update((block["address"], block["requested_size"]) for block in segment["blocks"]
                      if block["state"] == "active_allocated")
    assert len(blocks) == now["blocks"]
    for begin, size in model.sizes.items():
        assert blocks.get(begin) == size, (hex(begin), size, blocks.get(begin))


def load_by_workers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads: that is what is tried
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2,
                                             pin_memory=True)
        total = sum(int(batch.sum()) for batch in loader)
    assert total == 28 * 1000


def work(worker, wrong):
    try:
        for _ in range(STEPS):
            worker.step()
    except BaseException as error:
        wrong.append(error)
        raise


def begin():
    """Figures with nothing of ours alive: a first graph leaves the generator's tensors."""
    warnings.filterwarnings("ignore", "The CUDA Graph is empty")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.empty(1, device="cuda")
    settle()
    torch.cuda.empty_cache()
    return figures()


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    model, wrong, rounds = Model(), [], 0
    base = begin()
    workers = [Worker(model, seed * 100 + number) for number in range(THREADS)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        threads = [threading.Thread(target=work, args=(one, wrong)) for one in workers]
        for thread in threads:
            thread.start()
        if rounds % 4 == 1:
            load_by_workers()
        for thread in threads:
            thread.join()
        if wrong:
            sys.exit(1)
        check_quiet(model, base)
        rounds += 1
        if rounds % 10 == 0:
            for worker in workers:
                worker.clear()
            settle()
            torch.cuda.empty_cache()
            assert figures() == base, (figures(), base)
    stats = torch.cuda.memory_stats()
    print(f"{rounds} rounds of {THREADS * STEPS} steps, {stats['allocation.all.allocated']} blocks,"
          f" {stats['num_ooms']} times out of memory, {stats['num_alloc_retries']} retries",
          flush=True)
    global kept  # alive at the interpreter's end
    kept = workers


main()
