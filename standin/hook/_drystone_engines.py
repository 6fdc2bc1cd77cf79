# SPDX-License-Identifier: Apache-2.0
"""Serving engines: what an engine says of its own memory, and its end when it is ready.

Each engine has a file, _drystone_NAME.py, with

    NAME      of its package
    REFUSALS  texts by which it says that memory is too small, in its own words
    WATCHED   {module: function(module, engine)}, which wraps what is worth watching

A process that tells figures is a worker; it is dumped when its part is over. The process whose
engine is ready says so in a file. Once all engines of the program have, the launcher ends it.
"""
import ctypes
import functools
import os
import sys
import time

import _drystone_sglang
import _drystone_vllm

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
FIGURES = ("version", "kv_bytes", "kv_tokens", "length", "requests", "weights_bytes",
           "activation_bytes", "outside_bytes", "outside_assumed_bytes", "graph_bytes",
           "request_bytes", "asleep_bytes", "utilization", "total_bytes", "engines", "assumed")


def find_outside(table, version, capability):
    """Return the bytes of the newest release that is not newer; unknown cards get the first's."""
    release = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    rows = [(first, card, size) for (first, card), size in table.items()
            if not release or first <= release]
    newest = max((first for first, _, _ in rows), default=None)
    rows = {card: size for first, card, size in rows if first == newest}
    return rows.get(capability, next(iter(rows.values()), 0))


class Engine:
    """One engine in this process. `hook` has note, dump and leave a message of its end.

    `request` is None, or the lengths of a request and its answer, which the engine serves when it
    is ready; `engines` is the number of engines that the program starts, and each has as many
    processes that say they are ready as `ranks`.
    """

    def __init__(self, source, hook):
        self.source, self.hook, self.has_dumped = source, hook, False
        self.engines, self.ranks, self.before = 1, 1, None

    @property
    def request(self):
        return self.hook._settings["request"]

    def find_watched(self):
        """Return {module: function(module)}, none of which fails the program."""
        def run(watch, module):
            self.guard(watch, module, self)
        return {name: functools.partial(run, watch) for name, watch in self.source.WATCHED.items()}

    def tell(self, **figures):
        """Note figures; None stands for one that this release does not tell."""
        state = self.hook._state
        if state["engine"] is None:
            state["engine"] = {"name": self.source.NAME, **dict.fromkeys(FIGURES)}
        state["engine"].update({key: value for key, value in figures.items()
                                if value is not None})

    def guard(self, function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except Exception as error:
            self.hook.note(f"{self.source.NAME} is of a release that is not known: {error}")

    def wrap(self, owner, name, then=lambda *_, **__: None, first=lambda *_, **__: None):
        """Run first(self of the method, its arguments) before a method, and then(result, self,
        its arguments) after it. An exception of the method is noted, for the engine may swallow
        it or end other processes first."""
        method = getattr(owner, name, None)
        if method is None:
            return

        @functools.wraps(method)
        def run(one, *args, **kwargs):
            self.guard(first, one, *args, **kwargs)
            try:
                result = method(one, *args, **kwargs)
            except Exception as error:
                self.fail(error)
                raise
            self.guard(then, result, one, *args, **kwargs)
            return result

        setattr(owner, name, run)

    def fail(self, error):
        """Note what ends the engine, once: the innermost call comes first."""
        text = str(error)
        if self.hook._state["error"] or self.has_dumped:
            return
        self.hook.note_error(type(error), error, error.__traceback__)
        if any(words in text for words in self.source.REFUSALS):
            self.hook._state["refusal"] = text[:4000]
        self.dump()

    def dump(self):
        """Write the facts now: others may end this process. It need not have used a device."""
        self.has_dumped = True
        self.hook._state["pid"] = os.getpid()
        self.hook.dump(sys.modules["torch"])

    def use_dummies(self, config, folder):
        """Have dummies loaded where a model's folder has no weights; `config` has `load_format`."""
        if str(config.load_format).lower().endswith("auto") and os.path.isdir(folder) and \
                not any(name.endswith(WEIGHTS) for name in os.listdir(folder)):
            config.load_format = "dummy"
            self.hook.note(f"the weights are dummies: {os.path.basename(os.path.abspath(folder))} "
                           "has no file of weights")

    def take_outside(self, version, *tables):
        """Take from the card what it loses to others than PyTorch, and no call here stands for:
        of each table {(first release, (major, minor)): bytes}."""
        torch = sys.modules["torch"]
        capability = torch.cuda.get_device_capability()
        size = sum(find_outside(table, version, capability) for table in tables)
        take = ctypes.CDLL(None).drystone_standin_take_outside
        take.argtypes, take.restype = [ctypes.c_int, ctypes.c_uint64], ctypes.c_bool
        if take(torch.cuda.current_device(), size):
            self.tell(outside_assumed_bytes=size)

    def begin_request(self):
        """Note what a worker has when it is ready for a request."""
        self.before = [one.get("allocated_bytes.all.current", 0) for one in self.read_stats()]
        sys.modules["torch"].cuda.reset_peak_memory_stats()

    def read_stats(self):
        return self.hook.read_stats(sys.modules["torch"])

    def turn(self):
        """Note a turn of the engine's loop: a sign of life."""
        self.hook._state["turns"] += 1

    def end_worker(self):
        """Dump a process whose part is over; others may still be at theirs."""
        last, in_full = "its start", "the engine's start"
        if self.before is not None:
            last = in_full = "the request"
            peaks = [one.get("allocated_bytes.all.peak", 0) for one in self.read_stats()]
            self.tell(request_bytes=max(b - a for a, b in zip(self.before, peaks)))
        self.hook._state["stopped"] = \
            f"{self.source.NAME} is ready; what follows {last} was not run"
        self.hook._state["unseen"] = f"what follows {in_full} was not run"
        self.dump()

    def end(self):
        """Say that the engine is ready, and wait for the launcher, which ends all processes."""
        place = self.hook._settings["out"]
        with open(os.path.join(place, f"{os.getpid()}.ready"), "w", encoding="utf-8"):
            pass
        if sum(name.endswith(".ready") for name in os.listdir(place)) >= self.engines * self.ranks:
            with open(os.path.join(place, "ready"), "w", encoding="utf-8") as out:
                out.write(f"{self.engines}\n")
        while True:
            time.sleep(60)


def find_watched(hook):
    """Return {module: function(module)} of all engines."""
    return {name: watch for source in (_drystone_sglang, _drystone_vllm)
            for name, watch in Engine(source, hook).find_watched().items()}
