#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However a program ends, `drystone dry-run` says it truly: endings.py TOOL SMALL_LIBRARY EXTENSION [NAME...]

A folder that looks like a torch stands in for it: a device with 3 MiB reserved, and no snapshot.
EXTENSION wants functions of CUDA; it lies in a package, among files that are none.
A case is a program, the status of the run, and words that the report or the error must hold. A
word after "not" must be in neither.
"""
import os
import pathlib
import subprocess
import sys
import textwrap

import fake_torch

tool, library, extension = (pathlib.Path(name).resolve() for name in sys.argv[1:4])
chosen = sys.argv[4:]

TORCH = """
import types
from torch.version import __version__
from torch import version
class OutOfMemoryError(RuntimeError): pass
_calls, _peak, _hooks = [], [3 << 20], []
def _stats(device=0):
    sizes = {k: _peak[0] for k in ("reserved", "allocated", "requested")}
    return {**{f"{k}_bytes.all.peak": v for k, v in sizes.items()},
            "allocation.all.allocated": 8 * len(_steps), "requested_bytes.all.allocated": sum(_more)}
_steps, _empty, _more, _seeds = [], [], [], []
default_generator = types.SimpleNamespace(manual_seed=_seeds.append,
                                          initial_seed=lambda: _seeds[-1])
def _take():
    if not _empty: _refuse()
    return {"segments": [], "device_traces": [[]]}
def _refuse(*_, **__): raise RuntimeError("no history here")
def _reset(device): _peak[0] = 0
def save(*_, **__): raise RuntimeError("nothing to save")
serialization = types.SimpleNamespace(save=save)
cuda = types.SimpleNamespace(
    _lazy_call=_calls.append, device_count=lambda: 1, memory_stats=_stats,
    memory=types.SimpleNamespace(_record_memory_history=_refuse, _snapshot=_take),
    get_device_capability=lambda _=0: (9, 0), current_device=lambda: 0,
    get_arch_list=lambda: ["sm_90"],
    OutOfMemoryError=OutOfMemoryError)
_C = types.SimpleNamespace(_cuda_resetPeakMemoryStats=_reset)
def use():
    while _calls: _calls.pop(0)()
def step():
    use()
    for hook in _hooks: hook(_hooks)
    _steps.append(0)
import sys
optim = types.ModuleType("torch.optim"); sys.modules["torch.optim"] = optim
optim.Optimizer = type("Optimizer", (), {})
optimizer = types.ModuleType("torch.optim.optimizer")
sys.modules["torch.optim.optimizer"] = optimizer
optimizer.register_optimizer_step_post_hook = _hooks.append
autograd = types.SimpleNamespace(backward=None)
"""
# A program that serves has this of vLLM's: a worker and the core of the engine around it.
WORKER = """
import types
import torch
shape = types.SimpleNamespace(block_size=16)
cache = types.SimpleNamespace(num_blocks=256, kv_cache_groups=[
    types.SimpleNamespace(kv_cache_spec=shape, layer_names=["0"])],
    kv_cache_tensors=[types.SimpleNamespace(size=2 << 20)])
config = types.SimpleNamespace(
    cache_config=types.SimpleNamespace(gpu_memory_utilization=0.9),
    load_config=types.SimpleNamespace(load_format="dummy"),
    model_config=types.SimpleNamespace(max_model_len=1024, model="nowhere"),
    parallel_config=types.SimpleNamespace())
class Worker:
    vllm_config = config
    init_snapshot = types.SimpleNamespace(total_memory=4 << 20)
    model_runner = types.SimpleNamespace(model_memory_usage=1 << 20)
    def init_device(self): torch.use()
    def load_model(self): pass
    def determine_available_memory(self):
        self.peak_activation_memory, self.non_torch_memory = 1 << 19, 1 << 18
    def initialize_from_config(self, cache): pass
    def compile_or_warm_up_model(self): pass
"""
CORE = """
from vllm.v1.worker import gpu_worker
class EngineCore:
    def __init__(self, refusal=None):
        worker = gpu_worker.Worker()
        if refusal: raise ValueError(refusal)
        self.vllm_config = worker.vllm_config
        worker.init_device()
        worker.load_model()
        worker.determine_available_memory()
        worker.initialize_from_config(gpu_worker.cache)
        worker.compile_or_warm_up_model()
class EngineCoreProc(EngineCore):
    @staticmethod
    def run_engine_core(*, vllm_config):
        vllm_config.parallel_config.data_parallel_size_local = 1  # as a dense model's does
        EngineCoreProc()
"""
ONE_OF_TWO = """
import sys, time, types
from vllm.v1.engine.core import EngineCoreProc
time.sleep(int(sys.argv[1]))
config = types.SimpleNamespace(data_parallel_size_local=2)
EngineCoreProc.run_engine_core(vllm_config=types.SimpleNamespace(parallel_config=config))
"""
VARIED = "for i in range(9): torch._more.append(8 + i // 2 * 512); torch.step()"
RUNS = "from vllm.v1.engine.core import EngineCore\nEngineCore({})\n"
# A convolution of numbers of cuDNN's type {}: 0 is float, 2 is half.
CONVOLVES = """import ctypes; torch.use()
here, filter, bytes = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_size_t()
assert here.cudnnCreateFilterDescriptor(ctypes.byref(filter)) == 0
assert here.cudnnSetFilterNdDescriptor(filter, {}, 0, 4, (ctypes.c_int * 4)(8, 8, 3, 3)) == 0
assert here.cudnnGetConvolutionForwardWorkspaceSize(0, 0, filter, 0, 0, 1, ctypes.byref(bytes)) == 0
"""
FITS_IF = "fits if cuDNN's workspaces are as modelled; 3.00 MiB"
KNOWN, UNKNOWN = 0, 3
CASES = {
    "its_end": ("torch.use()", KNOWN, "fits  3.00 MiB", "ran to its end", "not cudnn"),
    "request_without_engine": ("torch.use()", UNKNOWN, "fits  3.00 MiB",
                               "--request: no serving engine was there to serve it"),
    "extension": ("import ctypes; torch.use()\n"
                  "assert ctypes.CDLL('./package/deep/_C.abi3.so', 2)"
                  ".extension_calls_cuda() == 0", KNOWN, "fits  3.00 MiB",
                  "cuOfAnExtension (1)", "cublasOfAnExtension (1)"),
    "engine": (RUNS.format("") + "print('IT GOES ON')", KNOWN,
               "fits when ready, if memory outside PyTorch is as assumed; KV cache 2.00 MiB = 4 096 tokens, 4 requests of 1 024",
               "weights 1.00 MiB | activation 512.00 KiB | outside PyTorch 256.00 KiB (assumed) | "
               "utilization 0.9 of 4.00 MiB", "vllm is ready; what follows its start was not run",
               "not release that", "not IT GOES ON", "not cards,"),
    "engine_varies": ("import vllm.v1.engine.core as core; n = int(sys.argv[1])\n"
                      "core.gpu_worker.cache.num_blocks = n or 256\n"
                      "core.EngineCore(None if n else 'No available memory for the cache blocks')", 1,
                      "run result kv cache tokens requests", "BLOCKS=256 fits 2.00 MiB "
                      "4 096 4", "BLOCKS=512 fits 2.00 MiB 8 192 8",
                      "BLOCKS=0 does not fit - - -"),
    "engine_of_gptq": ("import types, vllm.v1.engine.core as core\n"
                       "core.gpu_worker.config.quant_config = types.SimpleNamespace("
                       "modules_in_block_to_quantize=['.'])\ncore.EngineCore()", KNOWN,
                       "as assumed; if all linear layers are quantized; KV cache 2.00 MiB"),
    "shares_memory": ("from multiprocessing import shared_memory\n"
                      "shared_memory.SharedMemory('drystone_shares_memory', True, 9)\n"
                      "torch.use(); os.kill(os.getpid(), 9)", UNKNOWN, "signal 9", "not it left"),
    "engine_in_a_child": (f"subprocess.run([sys.executable, '-c', {RUNS.format('')!r}])\n"
                          "print('IT GOES ON')", KNOWN, "as assumed; KV cache 2.00 MiB",
                          "not IT GOES ON"),
    "engines_are_two": (
        f"each = [subprocess.Popen([sys.executable, '-c', {ONE_OF_TWO!r}, i]) for i in '02']\n"
        "for one in each: one.wait()", KNOWN, "4 requests of 1 024, in each of 2 engines"),
    "engine_gets_a_long_request": (
        RUNS.format(""), UNKNOWN, "ValueError: a request of 1000 and 25 tokens is longer than the "
        "engine's greatest length, 1024"),
    "engine_refuses": (f"text = {RUNS.format(repr('No available memory for the cache blocks. X'))!r}\n"
                       "subprocess.run([sys.executable, '-c', text], check=True)", 1,
                       "does not fit  ValueError: No available memory for the cache blocks. X"),
    "engine_fails": (RUNS.format(repr("no such quantization")), UNKNOWN,
                     "ValueError: no such quantization"),
    "child_of_multiprocessing": (
        "import multiprocessing\ndef f():\n    torch.use()\n    raise KeyError('lost')\n"
        "one = multiprocessing.get_context('fork').Process(target=f); one.start(); one.join()",
        UNKNOWN, "KeyError: 'lost'"),
    "worker_that_holds_is_killed": (
        "subprocess.run([sys.executable, '-c', 'import torch, os, time; torch.use(); "
        "time.sleep(2); os.kill(os.getpid(), 9)'])\ntorch.use()", UNKNOWN,
        "a process that used a GPU was killed"),
    "no_gpu": ("pass", UNKNOWN, "ended with status 0 before it used a GPU"),
    "exit": ("torch.use(); sys.exit()", KNOWN, "fits  3.00 MiB"),
    "exit_seven": ("torch.use(); sys.exit(7)", UNKNOWN, "known  it ended with status 7",
                   "not ran to its end"),
    "exit_text": ("torch.use(); sys.exit('bad data')", UNKNOWN, "it ended with status 1"),
    "exit_first": ("sys.exit(7)", UNKNOWN, "ended with status 7 before it used a GPU"),
    "at_once": ("torch.use(); os._exit(0)", KNOWN, "fits  3.00 MiB"),
    "at_once_seven": ("torch.use(); os._exit(7)", UNKNOWN, "it ended with status 7"),
    "at_once_first": ("os._exit(7)", UNKNOWN, "status 7 before it used a GPU"),
    "exception": ("torch.use()\nraise ValueError('no data')", UNKNOWN, "an exception ended it",
                  "ValueError: no data", "p.py:3"),
    "assert_bare": ("torch.use()\nassert 1 > 2", UNKNOWN, "AssertionError: assert 1 > 2",
                    "p.py:3"),
    "no_text": ("torch.use()\nraise KeyboardInterrupt", UNKNOWN, "KeyboardInterrupt: raise"),
    "exception_first": ("assert False", UNKNOWN, "before it used a GPU"),
    "nothing_held": ("torch._peak[0] = 0; torch.use()\nassert False", UNKNOWN,
                     "AssertionError: assert False", "not  fit, ", "not cards"),
    "peaks_reset": ("torch.use(); torch._C._cuda_resetPeakMemoryStats(0)", KNOWN,
                    "fits  3.00 MiB"),
    "thread": ("torch.use()\ndef f(): raise ValueError('x')\nt = threading.Thread(target=f)\n"
               "t.start(); t.join()", KNOWN, "fits as far as it ran: ValueError at",
               "p.py:3 f ended a thread"),
    "thread_exits": ("torch.use()\nt = threading.Thread(target=sys.exit)\nt.start(); t.join()",
                     KNOWN, "fits  3.00 MiB"),
    "child_exits": ("torch.use()\nif os.fork() == 0: os._exit(5)\nos.wait()", KNOWN,
                    "fits  3.00 MiB"),
    "child_killed": ("torch.use(); torch._peak[0] = 0\nif os.fork() == 0: os.kill(os.getpid(), 9)\n"
                     "os.wait()", KNOWN, "fits  0 B"),
    "worker_killed": ("subprocess.run([sys.executable, '-c', 'import torch, os; "
                      "torch.use(); torch.step(); os.kill(os.getpid(), 9)'])\n"
                      "torch._peak[0] = 0; torch.use()",
                      UNKNOWN, "a process that used a GPU was killed", "not  0 B each"),
    "worker_killed_early": ("subprocess.run([sys.executable, '-c', 'import torch, os; "
                            "torch.use(); os.kill(os.getpid(), 9)'])\n"
                            "torch._peak[0] = 0; torch.use()",
                            UNKNOWN, "a process that used a GPU was killed"),
    "worker_alone_killed": ("subprocess.run([sys.executable, '-c', 'import torch, os; "
                            "torch.use(); os.kill(os.getpid(), 9)'])", UNKNOWN,
                            "ended with status 0 after a process used a GPU"),
    "worker_fits": ("subprocess.run([sys.executable, '-c', 'import torch; torch.use()'])",
                    KNOWN, "fits  3.00 MiB"),
    "two_share": ("subprocess.run([sys.executable, '-c', 'import torch; torch.use()'])\ntorch.use()",
                  KNOWN, "fits if its processes do not peak together; 3.00 MiB",
                  "together 1.50 GiB"),
    "two_apart": ("os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
                  "subprocess.run([sys.executable, '-c', 'import torch; torch.use()'])\n"
                  "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\ntorch.use()",
                  KNOWN, "fits 3.00 MiB", "not together"),
    "daemon": ("if os.fork() == 0:\n    os.setsid(); torch.use(); os.mkdir('used'); time.sleep(60)\n"
               "while not os.path.exists('used'): time.sleep(0.01)", UNKNOWN,
               "after a process used a GPU", "left 1 process running"),
    "killed_first": ("os.kill(os.getpid(), 9)", UNKNOWN,
                     "signal 9 (Killed) ended the program before it used a GPU"),
    "exits_by_exec": ("torch.use(); os.execv('/bin/sh', ['sh', '-c', 'exit 3'])", UNKNOWN,
                      "status 3 after a process used a GPU"),
    "own_excepthook": ("torch.use(); sys.excepthook = lambda *what: None\nraise KeyError('hidden')",
                       UNKNOWN, "error KeyError: 'hidden' (", "p.py:3", "an exception ended it"),
    "raises_exit": ("torch.use()\nraise SystemExit(3)", UNKNOWN, "it ended with status 3"),
    "quits": ("torch.use()\nquit(3)", UNKNOWN, "it ended with status 3"),
    "raises_text": ("torch.use()\nraise SystemExit('no data')", UNKNOWN, "no data",
                    "it ended with status 1"),
    "exit_caught": ("torch.use()\ntry: sys.exit(3)\nexcept SystemExit: pass", KNOWN, "fits  3.00 MiB"),
    "raises_in_a_module": ("torch.use()\nimport q; q.main()", UNKNOWN, "it ended with status 7"),
    "changes_names": ("torch.use(); os.truncate('deep/q.py', 0); assert not open('deep/q.py').read()\n"
                      "for name in 'latest', 'folder', 'q.py':\n    os.remove(name)\n"
                      "os.symlink('p.py', 'latest'); os.symlink('out', 'folder'); os.link('p.py', 'q.py')\n"
                      "assert 'torch.use' in open('q.py').read()\n"
                      "os.remove('deep/q.py'); os.rmdir('deep')",
                      KNOWN, "fits  3.00 MiB", "changes_names/latest", "changes_names/folder"),
    "raises_no_error": ("torch.use()\nraise SystemExit", KNOWN, "fits  3.00 MiB"),
    "text_that_raises": ("class Odd(Exception):\n    def __str__(self): raise KeyError('x')\n"
                         "torch.use()\nraise Odd()", UNKNOWN, "error Odd: raise Odd() (", "p.py:5"),
    "recursion": ("torch.use()\ndef f(): f()\nf()", UNKNOWN, "RecursionError", "p.py:3"),
    "syntax": ("torch.use()\nexec('(')", UNKNOWN, "SyntaxError"),
    "no_module": ("import nothing_like_it", UNKNOWN, "status 1 before it used a GPU"),
    "text_with_escapes": ("torch.use()\nraise ValueError('\\x1b[31m red')", UNKNOWN,
                          "ValueError: ?[31m red"),
    "handler_exits": ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); torch.use()\n"
                      "os.kill(os.getpid(), 15); time.sleep(60)", KNOWN, "fits  3.00 MiB"),
    "interrupts": ("torch.use(); os.kill(os.getpid(), 2); time.sleep(60)", UNKNOWN,
                   "KeyboardInterrupt"),
    "closes_streams": ("torch.use(); os.close(1); os.close(2)", KNOWN, "fits  3.00 MiB"),
    "out_of_memory": ("torch.use()\nraise torch.OutOfMemoryError('CUDA out of memory')", UNKNOWN,
                      "CUDA out of memory"),
    "host_at_the_edge": ("rows = b'x' * (512 << 20); torch.use()", KNOWN,
                         "fits if no look at the host missed its peak; 3.00 MiB"),
    "varies": ("torch.use()", KNOWN, "allocated reserved to spare steps", "not host"),
    "varies_with_host": ("torch.use()", KNOWN, "allocated reserved to spare host steps"),
    "steps_by_chance": (VARIED, KNOWN, "fits if chance makes no larger steps; 3.00 MiB"),
    "steps_of_a_seed": ("torch.default_generator.manual_seed(7)\n" + VARIED, KNOWN, "fits  3.00 MiB"),
    "few_by_chance": (VARIED.replace("9", "4"), KNOWN, "fits  3.00 MiB"),
    "steps_asked": ("for _ in range(9): torch.step()", KNOWN,
                    "fits as far as it ran: what follows step 2 was not run", "after 2 steps"),
    "convolves": (CONVOLVES.format(0), KNOWN, "fits  3.00 MiB", "cudnn 276.42 KiB",
                  "ResNet-50 in fp32 on a T4 are 1 to 9 % above"),
    "convolves_near_the_limit": (CONVOLVES.format(0), KNOWN, FITS_IF),
    "convolves_halves": (CONVOLVES.format(2), KNOWN, "fits  3.00 MiB", "cudnn 3.07 KiB",
                         "ResNet-50 in bf16 on an H100 was within 0.1 %"),
    "convolves_halves_elsewhere": (CONVOLVES.format(2), KNOWN, FITS_IF, "cudnn 276.42 KiB"),
    "convolves_in_series": (CONVOLVES.format(0), KNOWN,
                            "fits: if cuDNN's workspaces are as modelled"),
    "output_vanishes": ("torch._empty.append(1); torch.use()\n"
                        "os.rmdir('out')", 4, "fits  3.00 MiB", "out/x.pickle: "),
    "output_stays": ("torch._empty.append(1); torch.use()", KNOWN, "fits  3.00 MiB",
                     "snapshot out/x.pickle"),
    "waits_for_a_child": (
        "torch.use(); torch.step()\n"
        "busy = 'import time; t = time.time()\\nwhile time.time() < t + 5: pass'\n"
        "subprocess.run([sys.executable, '-S', '-c', busy])", KNOWN, "fits  3.00 MiB"),
    "reads": ("torch.use(); torch.step(); t = time.time(); file = open('/dev/zero', 'rb')\n"
              "while time.time() < t + 5: file.read(1 << 22)", KNOWN, "fits  3.00 MiB"),
    "works_on": ("torch.use(); torch.step()\n"
                 "for i in range(9):\n    scope = {}\n"
                 "    exec(f'def f{i}():\\n    import time; time.sleep(0.6)', scope)\n"
                 "    scope[f'f{i}']()", KNOWN, "fits  3.00 MiB"),
    "lives_for_ever": ("torch.use(); torch.step(); file = open('/dev/zero', 'rb')\n"
                       "while True: file.read(1 << 22)", UNKNOWN, "it waited too long"),
    "waits": ("torch.use(); torch.step()\nwhile True: time.sleep(0.1)", UNKNOWN,
              "it waited too long", "p.py:3"),
}
for number, name in ((6, "Aborted"), (11, "Segmentation fault"), (15, "Terminated"),
                     (7, "Bus error"), (4, "Illegal instruction"), (8, "Floating point exception")):
    CASES[f"signal_{number}"] = (f"torch.use()\nos.kill(os.getpid(), {number}); time.sleep(60)",
                                 UNKNOWN, f"signal {number} ({name}) ended the program after",
                                 "p.py:3")
for number, name in ((9, "Killed"), (1, "Hangup"), (24, "CPU time limit exceeded")):
    CASES[f"signal_{number}"] = (f"if {number} != 9: signal.signal({number}, signal.SIG_DFL)\n"
                                 f"torch.use()\nos.kill(os.getpid(), {number}); time.sleep(60)",
                                 UNKNOWN, f"signal {number} ({name}) ended the program after")
CASES["abort"] = ("torch.use()\nos.abort()", UNKNOWN, "signal 6 (Aborted)", "p.py:3")
CASES["abort_in_c"] = ("import ctypes; torch.use()\nctypes.CDLL(None).abort()", UNKNOWN,
                       "signal 6 (Aborted)", "p.py:3")
CASES["exit_in_c"] = ("import ctypes; torch.use()\nctypes.CDLL(None)._exit(4)", UNKNOWN,
                      "status 4 after a process used a GPU")
CASES["null_pointer"] = ("import ctypes; torch.use()\nctypes.string_at(0)", UNKNOWN,
                         "signal 11 (Segmentation fault)", "p.py:3")
CASES["imports_from_what_it_removes"] = ("""
    import shutil
    os.mkdir('made'); open('made/mine.py', 'w').close(); sys.path.insert(0, os.path.abspath('made'))
    import mine
    torch.use(); shutil.rmtree('made')""", KNOWN, "fits  3.00 MiB")
CASES["leaves_at_once"] = ("""
    class Last:
        def __del__(self): print('finalized')
    torch.use(); last = Last()""", KNOWN, "fits  3.00 MiB", "not finalized")
CASES["interrupted_again"] = ("""
    torch.use()
    if os.path.exists('out/first'):
        os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)
    open('out/first', 'w')""", 130, "fits  3.00 MiB", "late not known this run was interrupted",
                              "not other way")
CASES["fails_again"] = ("""
    if os.path.exists('out/first'): raise SystemExit(5)
    torch.use(); open('out/first', 'w')""", UNKNOWN, "fits  3.00 MiB",
                        "late not known this run failed", "not other way")
OPTIONS = {"request_without_engine": ["--request", "5,2"],
           "output_vanishes": ["-o", "out/x.pickle"], "output_stays": ["-o", "out/x.pickle"],
           "two_share": ["--memory", "1100MiB"], "two_apart": ["--memory", "1100MiB"],
           "convolves_near_the_limit": ["--card", "close.json"],
           "convolves_halves": ["--card", "close.json"],
           "convolves_halves_elsewhere": ["--card", "older.json"],
           "convolves_in_series": ["--card", "close.json", "--vary", "BLOCKS=1,2"],
           "varies": ["--vary", "BLOCKS=1,2"],
           "varies_with_host": ["--vary", "BLOCKS=1,2", "--host", "64GiB"],
           "host_at_the_edge": ["--host", "550MiB"],
           "engine_gets_a_long_request": ["--request", "1000,25"],
           **dict.fromkeys(("interrupted_again", "fails_again"), ["--bracket"]),
           "engine_varies": ["--vary", "BLOCKS=256,512,0"], "steps_asked": ["--steps", "2"],
           **dict.fromkeys(
               ("waits", "waits_for_a_child", "reads", "works_on", "lives_for_ever"),
               ["--patience", "1"])}
# They leave 2 or 3.1 MiB to PyTorch.
CARDS = {"small.json": '{"name": "small", "usable_bytes": 806354944}',
         "close.json": '{"name": "close", "usable_bytes": 807508378}',
         "older.json": '{"name": "older", "usable_bytes": 807508378, "capability": "8.6"}'}
# How it is started, not what it does: options, the name in TMPDIR, status, words.
STARTS = {
    "output_is_folder": (["-o", "torch"], "tmp", 4, "cannot write: Is a directory"),
    "output_nowhere": (["-o", "no/such.pickle"], "tmp", 4, "cannot write"),
    "host_too_small": (["--host", "1MiB"], "tmp", 1, "does not fit the host", "of the host's 1.00 MiB"),
    "host_of_nothing": (["--host", "0"], "tmp", 2, "--host 0: expected 1"),
    "request_of_nothing": (["--request", "0,5"], "tmp", 2, "--request 0,5: expected PROMPT,ANSWER"),
    "request_of_one": (["--request", "700"], "tmp", 2, "--request 700: expected PROMPT,ANSWER"),
    "host_large_enough": (["--host", "64GiB"], "tmp", 0, "fits 3.00 MiB"),
    "newline_in_tmpdir": ([], "t\nmp", 0, "fits  3.00 MiB"),
    "tab_in_tmpdir": ([], "t\tmp", 0, "fits  3.00 MiB"),
    "quote_in_tmpdir": ([], 't"mp', 0, "fits  3.00 MiB"),
    "more_than_is_left": (["--card", "small.json"], "tmp", 1, "does not fit  3.00 MiB of",
                          "the context and NCCL leave 2.00 MiB", "not 16.00 EiB"),
}


def make_package(folder):
    """A package with an extension, and with files and links that lead nowhere."""
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/_C.abi3.so").write_bytes(extension.read_bytes())
    (folder / "deep/cut.so").write_bytes(extension.read_bytes()[:700])
    (folder / "deep/text.so.1").write_text("INPUT(-lc)")
    (folder / "deep/libcurl.so.4").symlink_to(extension)
    (folder / "deep/folder.so").mkdir()
    (folder / "deep/again").symlink_to(folder)
    (folder / "deep/nowhere.so").symlink_to("nothing")
    os.mkfifo(folder / "deep/pipe.so")


def run(name, case, top):
    """None, or what is wrong."""
    folder = top / name
    folder.mkdir()
    fake_torch.make(folder, "2.9.0", "'12.8'", {"libtorch_cuda.so": library.read_bytes()}, TORCH)
    make_package(folder / "package")
    for place, text in {"": "__version__ = '0.19.0'", "v1/": "", "v1/worker/": "", "v1/engine/": "",
                        "v1/worker/gpu_worker.py": WORKER, "v1/engine/core.py": CORE}.items():
        path = folder / "vllm" / (place if place.endswith(".py") else place + "__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for card, text in CARDS.items():
        (folder / card).write_text(text)
    program, status, *words = case
    options, temporary = OPTIONS.get(name, []), "tmp"
    if name in STARTS:
        options, temporary = STARTS[name][:2]
    (folder / temporary).mkdir()
    (folder / "out").mkdir()
    (folder / "deep").mkdir()
    older = {place: folder / place for place in ("q.py", "deep/q.py", "latest", "folder")}
    for place in "q.py", "deep/q.py":
        older[place].write_text("def main():\n    raise SystemExit(7)\n")
    older["latest"].symlink_to("q.py")
    older["folder"].symlink_to("deep")
    (folder / "p.py").write_text("import os, signal, subprocess, sys, threading, time, torch\n" +
                                 textwrap.dedent(program) + "\n")
    words_of_program = ["p.py"] + ["{BLOCKS}"] * ("--vary" in options)
    process = fake_torch.start(tool, folder, words_of_program, folder / temporary, options, "")
    try:
        said = "".join(process.communicate(timeout=60))
    except subprocess.TimeoutExpired:
        process.terminate()
        said = "no end after 60 s\n" + "".join(process.communicate())
    is_kept = [str(path.resolve().relative_to(folder.resolve())) for path in older.values()] == \
        ["q.py", "deep/q.py", "q.py", "deep"] and all("(7)" in older[place].read_text()
                                                      for place in ("q.py", "deep/q.py"))
    left = [path.name for path in (folder / temporary).iterdir()]
    left += [str(path) for path in pathlib.Path("/dev/shm").glob(f"drystone_{name}")]
    wrong = [word for word in words if (word[4:] in said if word[:4] == "not " else
                                        " ".join(word.split()) not in " ".join(said.split()))]
    if process.returncode == status and not wrong and not left and is_kept:
        return None
    return f"status {process.returncode}, expected {status}; {wrong}; left {left}; older files " \
        f"{'stay' if is_kept else 'change'}\n{said}"


cases = {**CASES, **{name: ("torch.use()", *start[2:]) for name, start in STARTS.items()}}
fake_torch.run_cases("endings", {name: case for name, case in cases.items()
                                 if not chosen or name in chosen}, run)
