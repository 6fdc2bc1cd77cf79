# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: records its memory, counts its steps, and ends it.

The launcher passes options in DRYSTONE_DRY_RUN, a JSON object:

    out     a folder; each process that used a device writes PID.pickle and PID.json there.
            PID.begun is there from the first use on; a signal's traceback is written to it
    steps   number of optimiser steps to run; 0: until the program ends
    until   "epoch": end where steps repeat for the second time; "end": only end loops early
    events  maximal number of history events; the last ones are kept
    patience    seconds without a step, a new peak or a sign of life (_drystone_life.py) after
                which the program is ended; they count from the first allocation
    values      whether small operations are computed (_drystone_values.py)
    write       whether the program may change files that were there (_drystone_files.py)
    request     null, or [prompt, answer]: the lengths in tokens of a request that a serving engine
                gets when it is ready
    world_size  not 0: this process runs alone as one of these ranks (_drystone_lone_rank.py)

A step ends when an optimiser has stepped, or, where there is none, when weights are updated by
hand (_drystone_by_hand.py). Two steps are alike when they request equally many blocks and bytes,
and add equally many bytes to those allocated and reserved. Steps repeat when a period of them has
come three times in a row and added little; later ones are then assumed to do the same. Two nets
that alternate have a period of 2. The program's own statistics are not reset.

Steps that repeat end no program but the loop around them (_drystone_turns.py), so that what comes
once an epoch is seen. The first loop runs some turns more, for what comes each tenth step. Steps of
lengths by chance never repeat: if half of them hardly raised the peak, and half the patience is
over, their loop ends, too, and a quarter of the patience is enough for later loops.

The hook starts when torch is imported, and does nothing in other processes. A failure of the hook
must not fail the program: it is noted and reported.
"""
import atexit
import ctypes
import faulthandler
import gc
import importlib.abc
import json
import linecache
import os
import pickle
import re
import signal
import sys
import threading
import time

import _drystone_answers
import _drystone_by_hand
import _drystone_compiler
import _drystone_engines
import _drystone_files
import _drystone_history
import _drystone_kernels
import _drystone_life
import _drystone_lone_rank
import _drystone_rounds
import _drystone_turns

PERIOD_MAX = 16  # steps
SEED = 0x6472797374  # PyTorch's host generator begins with it, so that all runs draw the same
TIMES = 3  # a period must come this often to count as repeating
LEAST = 21  # turns before a loop is ended, or LEAST_S seconds of the processor
RISE = 17 / 16  # a peak that is higher by more counts; of equal chances, each second half has one
VARIED = 10 * LEAST  # steps of several ranks that do not repeat, before their loop is ended
FEW = 5  # steps that differ in size are enough after twice the patience
LEAST_S = 5  # a quarter of the patience does, too: a loader may be slow
LIVES = 10  # times the patience after which a program is ended in spite of signs of life
COMPILE_WORKER = os.path.join("torch", "_inductor", "compile_worker", "__main__.py")
EXIT = re.compile(r"raise\s+SystemExit|(?<![.\w])(exit|quit)\(")
FINALIZE_MAX = 20  # seconds that Python may take for its end
GROWTH_MAX = 65536  # bytes that steps may leave and still repeat: a list of losses
_settings = {}
_state = {"steps": [], "notes": [], "oom": None, "error": None, "code": 0, "dumped": False,
          "begin": time.time(), "stopped": None, "initialized": False, "stuck": False,
          "repeats": None, "unseen": None, "since": 0, "peaks": {}, "pid": None, "files": None,
          "no_kernels": None, "traces": None, "engine": None,
          "refusal": None, "turns": 0, "rise": (0, 0), "loop_begin": None, "updated": (None, set()),
          "peak_steps": {}, "main": "/", "rounds": None, "round": None}
_lock = threading.Lock()
_dumping = threading.RLock()
_exit = os._exit


def note(text):
    if text not in _state["notes"]:
        _state["notes"].append(text)


# --- after torch is imported ----------------------------------------------------------------


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.then(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds watched modules by the other finders, and runs a function once they are loaded.

    A module may be found without being loaded, so every find is hooked.
    """

    def __init__(self):
        self.watched = {"torch": attach, "torch.utils.data.dataloader":
                        lambda module: _drystone_turns.wrap_loaders(module, judge_turn),
                        "transformers.generation.utils": _drystone_answers.end_generation,
                        "deepspeed.runtime.utils": _drystone_answers.trust_norms,
                        "torch._inductor.select_algorithm": _drystone_answers.end_search,
                        "torch._inductor.runtime.coordinate_descent_tuner":
                        _drystone_answers.end_descent,
                        "triton.runtime.autotuner": _drystone_answers.end_tuning,
                        "multiprocessing.process": watch_children,
                        **({"deepspeed.runtime.zero.utils": _drystone_lone_rank.agree,
                            "torch.distributed.pipelining.stage":
                            _drystone_lone_rank.derive_gradients}
                           if _settings["world_size"] else {}),
                        **_drystone_kernels.find_watched(note),
                        **_drystone_engines.find_watched(sys.modules[__name__])}

    def find_spec(self, name, path=None, target=None):
        if name not in self.watched:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec:
                spec.loader = _Loader(spec.loader, self.watched[name])
                return spec
        return None


def watch_children(module):
    """Note an exception that ends a process of multiprocessing, which never reaches a hook."""
    run = module.BaseProcess.run

    def watched(process):
        try:
            run(process)
        except Exception as error:
            note_error(type(error), error, error.__traceback__)
            raise

    module.BaseProcess.run = watched


def attach(torch):
    # Python forgets it at the end of the file, before its own end
    _state["main"] = os.path.abspath(getattr(sys.modules["__main__"], "__file__", None) or "/")
    try:
        if _state["files"]:
            _state["files"].guard_torch(torch)
        _state["history"] = _drystone_history.History(torch)
        torch.default_generator.manual_seed(SEED)
        torch.cuda._lazy_call(lambda: begin(torch))
        from torch.optim.optimizer import register_optimizer_step_post_hook
        register_optimizer_step_post_hook(lambda optimizer, *_: on_step(torch, optimizer))
        _drystone_by_hand.ByHand(torch, lambda: on_step(torch, None))
        if _settings["world_size"]:
            _drystone_lone_rank.stand_in(_settings["world_size"], int(os.environ["RANK"]), note)
        _drystone_compiler.put_off(torch)
    except Exception as error:  # torch without CUDA, or a very old one
        note(f"this torch cannot be looked into: {error}")


def begin(torch):
    """Start history and the zeroing of blocks when CUDA is first used.

    A process that compiles for the program asks for the card's properties alone.
    """
    if sys.argv[0].endswith(COMPILE_WORKER):
        return
    with _lock:
        if _state["initialized"]:
            return
        _state["initialized"], _state["pid"] = True, os.getpid()
    keep_peaks(torch)
    try:
        trace_signals()
    except (OSError, ValueError) as error:
        note(f"where a signal ends it will not be known: {error}")
    threading.Thread(target=watch, args=(torch,), daemon=True).start()
    _state["no_kernels"] = find_lack(torch)
    if not record():
        return  # cudaMallocAsync's allocator, which has no tracker either
    try:
        torch._C._cuda_attach_out_of_memory_observer(on_oom)
    except Exception as error:
        note(f"no observer of out-of-memory: {error}")
    zero_blocks()
    _drystone_answers.answer(is_alone=_settings["world_size"] > 0)
    if _settings["values"]:
        import _drystone_values
        _drystone_values.switch_on(note)
    else:
        _drystone_answers.trust_distributions()
    make_masks(torch)
    if not _settings["brief"]:
        trace_forward(torch, True)
    find_owners()


def trace_forward(torch, wanted):
    """Give memory of the backward pass the line of the forward pass that it belongs to.

    It costs 10 to 40 % of a step, so that steps that repeat go without.
    """
    if wanted != _state["traces"]:
        _state["traces"] = wanted
        torch.autograd.set_detect_anomaly(wanted, check_nan=False)


def find_owners():
    """Watch which module runs and what is its own."""
    def guard(function):
        def run(*args):
            try:
                return function(*args)
            except Exception as error:
                note(f"owners by module are not all known: {error}")
        return run

    try:
        from _drystone_owners import Owners
        owners = Owners()
        owners.watch(guard)
        _state["look"], _state["get_owners"] = guard(owners.look_at), guard(owners.get)
        _state["calls"] = owners.calls
        _state["rounds"] = _drystone_rounds.Rounds(sys.modules["torch"],
                                                   lambda: measure(sys.modules["torch"]))
        owners.on_call = guard(on_call)
    except Exception as error:
        note(f"owners by module are not known: {error}")


def find_lack(torch):
    """Return what this torch has kernels for, if the card is none of that; else None."""
    card = torch.cuda.get_device_capability(0)
    built = torch.cuda.get_arch_list()
    for name in built:  # sm_90a, compute_120
        kind, _, digits = name.partition("_")
        number = divmod(int("".join(c for c in digits if c.isdigit())), 10)
        if number <= card and (kind == "compute" or number[0] == card[0]):
            return None
    return f"it has kernels for {' '.join(built)}, the card is {card[0]}.{card[1]}" \
        if built else None


def record():
    """Start the dry run's history; the program's own calls do not end it."""
    start, brief = _state["history"].start, _settings["brief"]
    try:
        # Python frames only: C++ frames cost a hundred times as much
        start(max_entries=_settings["events"], stacks="python", context=None if brief else "all")
    except TypeError:
        start(True, trace_alloc_max_entries=_settings["events"],
              trace_alloc_record_context=not brief)
    except RuntimeError as error:
        note(f"no history: {str(error).splitlines()[0]}")
        return False
    return True


def trace_signals():
    """Have the line written where a signal ends the process, which tells nothing else then."""
    _state["begun"] = open(get_name() + ".begun", "w", encoding="utf-8")  # noqa: SIM115
    if not faulthandler.is_enabled():
        faulthandler.enable(_state["begun"], all_threads=False)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        faulthandler.register(signal.SIGTERM, _state["begun"], all_threads=False, chain=True)


def get_name():
    return os.path.join(_settings["out"], str(os.getpid()))


def keep_peaks(torch):
    """Remember the peaks that the program resets."""
    for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
        reset = getattr(torch._C, name, None)
        if reset:
            def keep(*which, reset=reset):
                read_peaks(torch)
                reset(*which)
            setattr(torch._C, name, keep)


def read_peaks(torch, step=None):
    """Return {(device, "reserved"): bytes} of the whole run, and note the step of a new peak."""
    peaks = _state["peaks"]
    for device, stats in enumerate(read_stats(torch)):
        for kind in ("allocated", "reserved", "requested"):
            peak = stats.get(f"{kind}_bytes.all.peak", 0)
            if peak > peaks.get((device, kind), -1):
                peaks[device, kind] = peak
                _state["peak_steps"][device, kind] = len(_state["steps"]) if step is None else step
    return peaks


def zero_blocks():
    """Make new blocks read as zeros: programs would take stale bytes for sizes."""
    try:
        watch = ctypes.CDLL(None).drystone_standin_watch_blocks
        watch.argtypes, watch.restype = [], ctypes.c_char_p
        why = watch()
    except AttributeError:
        why = b"the stand-in is not there"
    if why:
        note(f"blocks keep what they held: {why.decode()}")


def make_masks(torch):
    """Give masks and counts their real values, and note where unknown ones decide."""
    try:
        from _drystone_masks import Masks
        _state["masks"] = Masks(torch, ctypes.CDLL(None), _settings["values"])
    except Exception as error:
        note(f"masks and counts read as zeros: {error}")


def on_oom(device, asked, total, free):
    if _state["oom"] is None:
        look_at_owners(1 << 62)
        _state["oom"] = {"device": device, "asked_bytes": asked, "total_bytes": total,
                         "free_bytes": free, "step": len(_state["steps"])}


# --- steps ----------------------------------------------------------------------------------


def read_stats(torch):
    """Return each device's statistics; empty if the program's allocator has none."""
    try:
        return [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
    except RuntimeError:
        return [{}]


def measure(torch):
    """Return sums of all devices: blocks and bytes requested so far, bytes of what is left of these,
    of segments, and of blocks, which are rounded."""
    sums = [0, 0, 0, 0, 0]
    for stats in read_stats(torch):
        for i, key in enumerate(("allocation.all.allocated", "requested_bytes.all.allocated",
                                 "requested_bytes.all.current", "reserved_bytes.all.current",
                                 "allocated_bytes.all.current")):
            sums[i] += stats.get(key, 0)
    return sums


def is_by_chance(torch):
    """Tell whether half of the steps have sizes of their own, in as many blocks, and no seed is set.

    Steps that do other things have other numbers of blocks.
    """
    sizes = {}
    for blocks, size, *_ in (step["kind"] for step in _state["steps"]):
        sizes.setdefault(blocks, set()).add(size)
    most = max(map(len, sizes.values()), default=0)
    return most > TIMES and 2 * most >= len(_state["steps"]) and \
        torch.default_generator.initial_seed() == SEED


def look_at_owners(peak, optimizer=None):
    if "look" in _state:
        _state["look"](peak, optimizer)


def on_step(torch, optimizer):
    """Note a step of an optimizer; None: an update by hand."""
    if not _state["initialized"] or threading.current_thread() is not threading.main_thread():
        return
    if _state["rounds"]:
        _state["rounds"].forget()
    steps, now = _state["steps"], measure(torch)
    is_part = optimizer is not None and bool(steps_beside(torch, optimizer) or
                                      steps and now[0] - steps[-1]["total"][0] < 8)
    peaks = read_peaks(torch, len(steps) - is_part)
    peak = sum(most for (_, kind), most in peaks.items() if kind == "allocated")
    look_at_owners(peak, optimizer)
    if peak > _state["rise"][0] * RISE:
        _state["rise"] = peak, len(steps)
    if is_part:
        steps[-1]["total"] = now
        return
    before = steps[-1]["total"] if steps else [0] * len(now)
    _state.setdefault("first", tell_time())
    _state["loop_begin"] = _state["loop_begin"] or time.monotonic()
    steps.append({"total": now, "kind": [a - b for a, b in zip(now[:4], before)]})
    tell_progress(now)
    begin = max(_state["since"], len(steps) - TIMES * PERIOD_MAX)
    kinds = [step["kind"] for step in steps[begin:]]
    period = find_period(kinds)
    if sum(kind[2] for kind in kinds[-period:]) > GROWTH_MAX:
        period = 0
    if _state["traces"] is not None:  # there is a history, with lines
        trace_forward(torch, not period)
    if _settings["steps"]:
        if len(steps) >= _settings["steps"]:
            _state["unseen"] = f"what follows step {len(steps)} was not run"
            stop(torch, f"after {len(steps)} steps, as asked")
        return
    if period and (_state["repeats"] or is_long(len(steps))):
        on_repeat(torch, kinds[-period:])
    elif not period and is_varied(len(steps) - _state["since"]):
        on_repeat(torch, [])


def steps_beside(torch, optimizer):
    """Tell whether an optimizer belongs to the step before, as those of a model's parts do.

    No graph was made since, and its first weight was not updated in that step.
    """
    try:
        nodes = torch._C._autograd._get_sequence_nr()
    except AttributeError:
        return False  # a release that does not tell
    first = id(next((one for group in optimizer.param_groups for one in group["params"]), None))
    before, updated = _state["updated"]
    is_part = nodes == before and first not in updated
    _state["updated"] = nodes, (updated if is_part else set()) | {first}
    return is_part


def on_call():
    if not is_one_of_many() and _state["rounds"].note_call():
        _state["round"] = "its modules are called in rounds of equal allocations"


def tell_time():
    return time.process_time(), time.monotonic()


def is_one_of_many():
    jobs = getattr(sys.modules["torch"], "distributed", None)
    return not _settings["world_size"] and jobs and jobs.is_available() and \
        jobs.is_initialized() and jobs.get_world_size() > 1


def is_long(turns, begin=None):
    """Tell whether a loop has run long enough to be ended. Ranks must agree, so theirs count."""
    of_processor, of_clock = (b - a for a, b in zip(begin or _state["first"], tell_time()))
    is_late = of_processor >= LEAST_S or of_clock >= _settings["patience"] / 4
    return turns >= LEAST or (is_late and not is_one_of_many())


def is_varied(count):
    """Tell whether so many steps differ in size, and the second half hardly raised the peak.

    Steps that leave more each time are none of that: they may come to an OOM.
    """
    waited = time.monotonic() - _state["loop_begin"]
    if count < (FEW if waited >= 2 * _settings["patience"] else LEAST):
        return False
    left = [step["total"][2] for step in _state["steps"][-count:]]
    if min(left[count // 2:]) > min(left[count // 4:count // 2]) + GROWTH_MAX:
        return False
    if is_one_of_many():
        return count >= VARIED
    is_late = waited >= _settings["patience"] / (4 if _state["repeats"] else 2)
    return is_late and _state["rise"][1] <= len(_state["steps"]) - count / 2


def on_repeat(torch, kinds):
    """End the loop around steps that repeat, or the program where that is not possible.

    No kinds: the steps differ in size.
    """
    steps, each = len(_state["steps"]), "" if len(kinds) == 1 else f", {len(kinds)} at a time"
    if _state["repeats"] is None:
        _state["repeats"] = f"steps repeat from step {steps - TIMES * len(kinds) + 1} on{each}" \
            if kinds else "steps differ in size"
    _state["since"], _state["loop_begin"] = steps, None
    totals = [step["total"] for step in _state["steps"][-len(kinds) - 1:]]
    growth = sum(kind[2] for kind in kinds)
    growth = growth and max(growth, totals[-1][4] - totals[0][4])  # in blocks
    whole = "each step leaves" if len(kinds) == 1 else f"each {len(kinds)} steps leave"
    try:
        is_slow = tell_time()[1] - _state["first"][1] > _settings["patience"]
        goes_on, times, unseen = _drystone_turns.cut(kinds, steps,
                                                     is_slow and not is_one_of_many())
    except Exception as error:  # a frame or a source of a kind that nobody thought of
        goes_on, times, unseen = False, 1, f"what follows its steps was not run ({error})"
    if times > 1 and goes_on and _settings["until"] == "epoch":
        goes_on, unseen = False, unseen or "what follows the second epoch was not run"
    unseen = "; ".join(filter(None, [
        None if kinds else "its steps differ in size, and a later one may need more", unseen,
        growth and f"{whole} {growth} B more"]))
    _state["unseen"] = _state["unseen"] or unseen or None
    if not goes_on:
        stop(torch, _state["repeats"])


def judge_turn(turns):
    """Judge one more turn of a loader; `turns` of it so far. None: they repeat without training."""
    torch = sys.modules["torch"]
    if not _state["repeats"] or threading.current_thread() is not threading.main_thread():
        return []
    try:
        nodes = torch._C._autograd._get_sequence_nr()
    except AttributeError:
        return []  # a release that does not tell
    now = (nodes, tell_time(), measure(torch))
    turns = [one for one in turns or [] if one[0] == nodes] + [now]
    turns = turns[:1] + turns[1:][-TIMES * PERIOD_MAX - 1:]
    kinds = [[b[2][0] - a[2][0], b[2][1] - a[2][1], *b[2][2:4]] for a, b in zip(turns, turns[1:])]
    is_over = is_long(len(kinds), turns[0][1]) and find_period(kinds[-TIMES * PERIOD_MAX:])
    return None if is_over else turns


def find_period(kinds):
    """Return the shortest period that came TIMES times at the end; 0: none."""
    for period in range(1, len(kinds) // TIMES + 1):
        last = kinds[-TIMES * period:]
        if last == last[:period] * TIMES:
            return period
    return 0


def tell_progress(now):
    with open(get_name() + ".progress", "w", encoding="utf-8") as out:
        out.write(f"{len(_state['steps'])} {now[2]} {now[3]}\n")


def stop(torch, why):
    _state["stopped"] = why
    dump(torch)
    leave(0)


# --- programs that hang ---------------------------------------------------------------------


def watch(torch):
    """End a program that waits for a value that no kernel computes, and report its line.

    Time counts from the first allocation: before, a program may load a model on the host. Time
    with compilers and loaders, with an evaluation before the first step and with other signs of
    life does not count, up to LIVES times the patience.
    """
    patience = _settings["patience"]
    seen, since, alive, life = None, time.monotonic(), time.monotonic(), _drystone_life.Life()
    while True:
        time.sleep(min(1.0, patience / 4))
        stats = read_stats(torch)
        now = (len(_state["steps"]) + _state["turns"], [s.get("reserved_bytes.all.peak", 0) for s in stats],
               [s.get("allocated_bytes.all.peak", 0) for s in stats])
        if life.look(bool(_state.get("calls"))):
            alive = time.monotonic()
        if now != seen and any(now[1]):
            tell_progress([0, 0, sum(now[2]), sum(now[1])])
        if now != seen or not any(now[2]):
            seen, since = now, time.monotonic()
            continue
        waited, quiet = (time.monotonic() - one for one in (since, max(since, alive)))
        if waited < LIVES * patience and quiet >= patience and has_rounds(since) and will_train():
            alive = time.monotonic()
        elif quiet >= patience or waited >= LIVES * patience:
            break
    if not _state["repeats"] and has_rounds(since):
        _state["repeats"] = "its modules are called in rounds of equal allocations"
    why = f"no step and no new peak for {patience} s, at {find_line()}"
    _state["stuck"], _state["unseen"] = not _state["repeats"] or will_train(), why
    stop(torch, why)


def will_train():
    """Tell whether the program has an optimizer that made no step yet: it evaluates first."""
    kind = sys.modules["torch"].optim.Optimizer
    return not _state["steps"] and any(isinstance(one, kind) for one in gc.get_objects())


def has_rounds(since):
    """Tell whether calls of outermost modules repeat since a time, by the blocks each asks for."""
    calls = [call for call in tuple(_state.get("calls", ())) if call[0] >= since]
    return find_period([(a[1], b[2] - a[2]) for a, b in zip(calls, calls[1:])]) > 0


def find_line():
    """Return the innermost line of the main thread in the program's own code."""
    frame, places = sys._current_frames().get(threading.main_thread().ident), []
    while frame:
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return name_own(places)


def find_raised(trace):
    """Return the innermost line of a traceback in the program's own code."""
    places = []
    while trace:
        places.insert(0, (trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return name_own(places)


def name_own(places):
    """Return the first place that is no library's, or the first; places are (code, line)."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    theirs = ("<", os.path.join(os.path.dirname(torch), "")) if torch else "<"
    for code, line in places:
        name = code.co_filename
        if not ("site-packages" in name or "/lib/python" in name or name.startswith(theirs) or
                os.path.basename(name).startswith("_drystone_")):
            return f"{name}:{line} {code.co_name}"
    code, line = places[0] if places else (None, 0)
    return f"{code.co_filename}:{line}" if code else "a line that is not known"


# --- the end --------------------------------------------------------------------------------


def find_physical(visible, device):
    """Return the machine's number of a device of this process."""
    number = visible[device] if device < len(visible) else ""
    return int(number) if number.isdigit() else device


class HostAccount(ctypes.Structure):
    """What the stand-in knows of this process's host memory, see standin/memory.h."""

    _fields_ = [(name, ctypes.c_uint64)
                for name in ("pinned", "pinned_peak", "untouched", "dirty_peak")]


def find_host():
    """Write the peak of resident memory before the dry run's own work adds to it."""
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.split(":", 1) for line in status)
    peak, files = (int(lines[key].split()[0]) << 10 for key in ("VmHWM", "RssFile"))
    with open(get_name() + ".part", "w", encoding="ascii") as out:
        out.write(f"{peak} {files}\n")
    os.replace(get_name() + ".part", get_name() + ".host")
    account = HostAccount()
    ctypes.CDLL(None).drystone_standin_host(ctypes.byref(account))
    return {"pinned_peak_bytes": account.pinned_peak, "untouched_bytes": account.untouched,
            "device_bytes": account.dirty_peak}


def find_rank():
    """Return the rank as text: that of torchrun or torch.distributed; None: there is none."""
    jobs = getattr(sys.modules.get("torch"), "distributed", None)
    is_one_of_many = jobs and jobs.is_available() and jobs.is_initialized() and \
        jobs.get_world_size() > 1
    return os.environ.get("RANK") or (str(jobs.get_rank()) if is_one_of_many else None)


def take_memory(torch, facts, name):
    """Add the devices and their owners to the facts, and write the snapshot."""
    nccl = ctypes.CDLL(None).drystone_standin_nccl_bytes
    nccl.argtypes, nccl.restype = [ctypes.c_int], ctypes.c_uint64
    torch.cuda.memory_stats(0)  # fails if the allocator counts nothing
    peaks = read_peaks(torch)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    facts["devices"] = [
        {"device": device, "physical": find_physical(visible, device), "nccl": nccl(device),
         "peak_step": _state["peak_steps"][device, "allocated"],
         **{kind: peaks[device, kind] for kind in ("allocated", "reserved", "requested")}}
        for device in range(torch.cuda.device_count())]
    kinds = ctypes.CDLL(None).drystone_standin_convolutions()
    facts["convolutions"] = (None, "half", "float", "float")[kinds]
    _state["history"].is_ours = True
    # For a snapshot PyTorch looks for the compiler's own frames, and would load the compiler.
    vars(torch).setdefault("_inductor", None)
    found = torch.cuda.memory._snapshot()
    with open(name + ".pickle", "wb") as out:
        pickle.dump(found, out)
    fullest = max(facts["devices"], key=lambda one: one["reserved"])["device"]
    if "get_owners" in _state and not _settings["brief"]:
        facts["owners"] = _state["get_owners"](found["device_traces"][fullest], fullest) or []


def dump(torch):
    if _state["pid"] != os.getpid():
        return  # a child, which has the parent's memory but no device
    with _dumping:  # the second thread leaves the program when the facts are there
        if not _state["dumped"]:
            _state["dumped"] = True
            write_facts(torch, get_name())


def write_facts(torch, name):
    try:
        host = find_host()
    except Exception as error:
        host = None
        note(f"host memory is not known: {error}")
    facts = {key: _state[key] for key in ("notes", "oom", "error", "stopped", "stuck", "repeats",
                                         "unseen", "no_kernels", "engine", "refusal")}
    facts.update(owners=[], host=host, convolutions=None,
                 repeats=facts["repeats"] or _state["round"])
    try:
        if _state["initialized"]:
            take_memory(torch, facts, name)
    except Exception as error:
        facts["notes"] = facts["notes"] + [f"no snapshot: {str(error).splitlines()[0]}"]
    masks = _state.get("masks")
    facts["guesses"] = masks.guesses.get() if masks else []
    facts["files"] = _state["files"].kept if _state["files"] else []
    facts.update(steps=len(_state["steps"]), torch=torch.__version__, cuda=torch.version.cuda,
                 rank=find_rank(), seconds=round(time.time() - _state["begin"], 3),
                 argv=sys.argv, fit=tell_fit(), by_chance=is_by_chance(torch))
    with open(name + ".part", "w", encoding="utf-8") as out:
        json.dump(facts, out)
    os.replace(name + ".part", name + ".json")  # whole, or not there


def tell_fit():
    """Return what drystone.fit saw and changed in this process; None: it was not asked."""
    fit = sys.modules.get("drystone.fit")
    try:
        return fit and fit.tell() or None
    except Exception as error:
        note(f"what was changed is not known: {error}")
        return None


def leave(code):
    """Exit without finalizing Python: autograd's threads may still wait for its lock."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    try:
        ctypes.CDLL(None).drystone_standin_report()
    except AttributeError:
        pass  # not under the stand-in
    _exit(code)


def raises_exit():
    """Tell whether a file of the program raises SystemExit itself: its status is Python's alone."""
    main = _state["main"]
    folder = os.path.join(os.path.dirname(main), "")
    files = {str(getattr(one, "__file__", None)) for one in list(sys.modules.values())}
    return any(EXIT.search("".join(linecache.getlines(one))) for one in files | {main}
               if one.startswith(folder) and one.endswith(".py") and
               not _drystone_turns.is_installed(one))


def on_exit():
    torch = sys.modules.get("torch")
    if torch is None or _state["pid"] != os.getpid():
        return
    note_unhooked()
    is_open = not _state["error"] and not _state["stopped"] and \
        (_state["code"] or raises_exit())
    dump(torch)
    if is_open:  # Python alone knows whether somebody caught the SystemExit
        faulthandler.dump_traceback_later(FINALIZE_MAX, exit=True, file=open(os.devnull, "w"))
    else:
        leave(_state["code"])


def note_unhooked():
    """Note the exception that ended a program with an excepthook of its own."""
    trace = getattr(sys, "last_traceback", None)
    if trace and not _state["error"] and not _state["stopped"] and \
            trace.tb_frame.f_globals.get("__name__") == "__main__":
        on_exception(sys.last_type, sys.last_value, trace)


def tell(value):
    """Return the text of an exception; "": it has none, or its own code raises."""
    try:
        return str(value)
    except Exception:
        return ""


def note_error(kind, value, trace):
    where = trace
    while where and where.tb_next:
        where = where.tb_next
    text = tell(value) or (where and linecache.getline(where.tb_frame.f_code.co_filename,
                                                      where.tb_lineno).strip())
    _state["error"] = {"kind": kind.__name__, "text": (text or kind.__name__)[:4000],
                       "file": where.tb_frame.f_code.co_filename if where else None,
                       "line": where.tb_lineno if where else None}


def on_exception(kind, value, trace):
    _state["code"] = 1
    note_error(kind, value, trace)
    if _state["repeats"] and not _state["oom"]:  # the loop that was ended may be the reason
        _state["unseen"] = f"{kind.__name__} at {find_raised(trace)} ended it after its steps"
        _state["error"], _state["stopped"] = None, f"{kind.__name__}: {tell(value)[:400]}"


def on_thread_exception(what, before):
    """Note an exception that ends a thread: the program may go on without its work."""
    if what.exc_type is not SystemExit and not _state["oom"]:
        _state["unseen"] = _state["unseen"] or \
            f"{what.exc_type.__name__} at {find_raised(what.exc_traceback)} ended a thread"
    before(what)


def exit_at_once(code):
    """Stand in for os._exit(), after which nobody could write the facts."""
    if _state["pid"] == os.getpid():
        _state["code"] = code
        if "torch" in sys.modules:
            dump(sys.modules["torch"])
            leave(code)
    _exit(code)


def arm():
    """Install the hook. Called once, before the program's first line."""
    _settings.update(json.loads(os.environ["DRYSTONE_DRY_RUN"]))
    finder = _Finder()
    if not _settings["write"]:
        files = _drystone_files.Files(os.path.join(_settings["out"], "files"), note)
        files.guard()
        finder.watched["safetensors.torch"] = files.guard_safetensors
        _state["files"] = files
    sys.meta_path.insert(0, finder)
    before, leave_by = sys.excepthook, sys.exit
    sys.excepthook = lambda *what: (on_exception(*what), before(*what))

    def remember(code=None):
        _state["code"] = code if isinstance(code, int) else int(code is not None)
        leave_by(code)

    sys.exit = remember
    in_thread, threading.excepthook = threading.excepthook, \
        lambda what: on_thread_exception(what, in_thread)
    os._exit = exit_at_once
    atexit.register(on_exit)  # registered first, so called last
