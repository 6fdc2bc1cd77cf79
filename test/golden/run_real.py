#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs started by `drystone run` on this machine: run_real.py TOOL

Statuses, signals, what the program finds set, and whether --prove tells the truth: of
programs that do as they are told, and of some that do not.
"""
import ctypes
import os
import pathlib
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

tool = pathlib.Path(sys.argv[1]).resolve()
failed = 0
PYTHON = sys.executable
CLEAN = {"PATH": os.environ["PATH"]}
# A sanitizer's runtime must come first, and takes malloc's place.
is_sanitized = b"__asan_init" in tool.read_bytes()


def run(*words, env=None, **more):
    return subprocess.run([tool, "run", *words], env=CLEAN | (env or {}), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=1800, **more)


def check(name, condition, done=None):
    global failed
    if not condition:
        failed += 1
        print(f"FAILED: {name}")
        if done:
            print(f"  exit {done.returncode}\n{done.stdout}{done.stderr}")


def skip(name):
    print(f"SKIPPED: {name}")


def has_row(done, verdict, name):
    return any(line.split()[:-1] != [] and line.startswith(f"  {verdict}") and name in line
               for line in done.stderr.splitlines())


def statuses():
    plain = ("--malloc", "keep", "--thp", "keep")
    for prove in ((), ("--prove",)):
        check("the status is the program's", run(*prove, *plain, "sh", "-c", "exit 7")
              .returncode == 7)
        check("not found is 127", run(*prove, *plain, "/no/such").returncode == 127)
        check("no program is 126", run(*prove, *plain, "/etc/passwd").returncode == 126)
    done = run("--prove", *plain, "--", "sh", "-c", "kill -9 $$")
    check("a signal is 128 and its number", done.returncode == 137, done)
    check("options behind the program are its own",
          run("-q", "sh", "-c", "echo $0", "--json").stdout == "--json\n")
    for words in ((), ("--profile", "fast", "true"), ("--malloc", "x", "true"),
                  ("--thp", "on", "true"), ("--omp-threads", "0", "true"),
                  ("--omp-threads", "4x", "true"), ("--membind", "x", "true"),
                  ("--strict", "true"), ("--json", "true"), ("--root", "/", "true"),
                  ("--node", "1x", "true"), ("--node", "99999999999999999999", "true")):
        done = run(*words)
        check(f"{words} is refused", done.returncode == 2 and done.stderr, done)
    with tempfile.TemporaryDirectory() as empty:
        done = run("--dry-run", "--root", empty, "--malloc", "mimalloc")
        check("a malloc that is not there is refused", done.returncode == 4, done)


def environment():
    show = "import os; print(*[os.environ.get(k) for k in ('OMP_NUM_THREADS', 'MALLOC_CONF')])"
    done = run("-q", "--omp-threads", "3", PYTHON, "-c", show)
    check("the program has its variables", done.stdout.startswith("3 "), done)
    done = run("-q", PYTHON, "-c", show, env={"OMP_NUM_THREADS": "5"})
    check("what is set is kept", done.stdout.startswith("5 "), done)
    done = run("-q", "--malloc", "glibc", tool, "run", "--malloc", "glibc", "--dry-run")
    check("nested, all is kept", "\n  set " not in done.stdout and "kept" in done.stdout,
          done)
    if hasattr(os, "sched_setaffinity"):
        done = run("-q", "--thp", "never", PYTHON, "-c",
                   "print([l for l in open('/proc/self/status') if 'THP_enabled' in l])")
        check("huge pages are off", "\\t1" not in done.stdout, done)


def signals():
    trap = ("import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
            "print('ready', flush=True)\ntime.sleep(30)")
    for prove in ((), ("--prove",)):
        with subprocess.Popen([tool, "run", "-q", *prove, PYTHON, "-c", trap], env=CLEAN,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdout.readline()
            child.send_signal(signal.SIGTERM)
            _, errors = child.communicate(timeout=1800)
        check("SIGTERM reaches the program", child.returncode == 9)
        check("and the proof comes all the same", not prove or b"proven" in errors)


HELPER = str(pathlib.Path(__file__).resolve().parent / "helper")
WAIT = f"import sys; sys.dont_write_bytecode = True; sys.path.insert(0, {HELPER!r}); import looked_at"
HOLD = f"b = b'x' * (96 << 20); {WAIT}"


def proofs():
    for name in ("glibc", "jemalloc", "tcmalloc", "mimalloc"):
        done = run("--prove", "--strict", "--malloc", name, PYTHON, "-c", HOLD)
        if done.returncode == 4:
            skip(f"{name} is not installed")
            continue
        check(f"{name} is proven", done.returncode == 0 and
              has_row(done, "proven", "malloc") and has_row(done, "proven", "variables"), done)
    lose = f"import os, sys; os.execve(sys.executable, [sys.executable, '-c', {HOLD!r}], {{}})"
    done = run("--prove", "--strict", "--malloc", "glibc", PYTHON, "-c", lose)
    check("lost variables are found", done.returncode == 1 and
          has_row(done, "NOT SO", "variables"), done)
    done = run("--prove", "--malloc", "glibc", PYTHON, "-c", lose)
    check("without --strict the status stays", done.returncode == 0, done)
    done = run("--prove", "--malloc", "glibc", "sh", "-c", f"{PYTHON} -c \"{HOLD}\"; exit 5")
    check("the largest process is looked at", done.returncode == 5 and
          "MiB" in done.stderr, done)


def allocator():
    """The seam's name is what counts: PyTorch is not at hand here."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "libdrystone_plug.so")
        with open("/proc/self/maps", encoding="ascii") as maps:
            libc = next(line.split()[-1] for line in maps if "/libc.so" in line)
        copy.write_bytes(pathlib.Path(libc).with_name("libm.so.6").read_bytes())
        load = f"import ctypes; ctypes.CDLL({str(copy)!r}); {HOLD}"
        done = run("--prove", "--strict", "--malloc", "keep", "--thp", "keep", "--allocator",
                   "paged", "--", PYTHON, "-c", load)
        check("an allocator that is there is proven", done.returncode == 0 and
              has_row(done, "proven", "allocator"), done)
    done = run("--prove", "--strict", "--malloc", "keep", "--thp", "keep", "--allocator", "paged",
               "--", PYTHON, "-c", HOLD)
    check("a program without PyTorch is found", done.returncode == 1 and
          has_row(done, "NOT SO", "allocator") and has_row(done, "proven", "variables"), done)
    done = run("-q", "--allocator", "torch", "--allocator-conf", "max_split_size_mb:64", "--on-oom",
               "a.pickle", "--", PYTHON, "-c", "import os, sys; print(os.environ"
               "['DRYSTONE_ALLOCATOR'], os.environ['DRYSTONE_ALLOCATOR_CONF'], os.environ"
               "['DRYSTONE_ON_OOM'], sys.modules['sitecustomize'].__file__)")
    check("Python is told", done.stdout.startswith("torch max_split_size_mb:64 a.pickle /") and
          "torch/hook/sitecustomize.py" in done.stdout, done)


def package():
    """Where the command finds the Python package, and what it says where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for command, hook in (("wheel/bin/drystone", "wheel/torch/hook"),
                              ("usr/bin/drystone", "usr/lib/drystone/python/drystone/torch/hook"),
                              ("deb/bin/drystone",
                               "deb/lib/python3/dist-packages/drystone/torch/hook")):
            there = pathlib.Path(folder, command)
            there.parent.mkdir(parents=True)
            shutil.copy(tool, there)
            words = [there, "run", "--dry-run", "--json", "--on-oom", "a.pickle"]
            done = subprocess.run(words, env=CLEAN, capture_output=True, text=True)
            check(f"{command} without its package is refused", done.returncode == 4 and
                  "the Python package" in done.stderr, done)
            pathlib.Path(folder, hook).mkdir(parents=True)
            done = subprocess.run(words, env=CLEAN, capture_output=True, text=True)
            check(f"{command} finds its package", done.returncode == 0 and
                  f'"{pathlib.Path(folder, hook).resolve()}"' in done.stdout, done)


def affinity():
    if len(os.sched_getaffinity(0)) < 2:
        skip("one CPU cannot be left")
        return
    one = min(os.sched_getaffinity(0))
    whole = sorted(os.sched_getaffinity(0))
    node = ("--node", "0") if os.path.exists("/sys/devices/system/node/node0") else None
    if not node:
        skip("the machine tells no nodes")
        return
    leave = f"import os; os.sched_setaffinity(0, {whole}); {WAIT}"
    narrow = lambda: os.sched_setaffinity(0, {one})
    done = run("--prove", "--strict", *node, PYTHON, "-c", leave, preexec_fn=narrow)
    check("a program that leaves its CPUs is found", done.returncode == 1 and
          has_row(done, "NOT SO", "CPUs"), done)
    done = run("--prove", *node, PYTHON, "-c", WAIT,
               preexec_fn=narrow)
    check("one that stays is proven", has_row(done, "proven", "CPUs"), done)


def broken_library():
    with tempfile.TemporaryDirectory() as prefix:
        library = pathlib.Path(prefix) / "lib" / "libjemalloc.so.2"
        library.parent.mkdir()
        head = open("/proc/self/exe", "rb").read(64)
        library.write_bytes(head[:16] + struct.pack("=H", 3) + head[18:])
        done = run("--prove", "--strict", "--malloc", "jemalloc", PYTHON, "-c", WAIT,
                   env={"VIRTUAL_ENV": prefix})
        check("a library that does not load is found", done.returncode == 1 and
              has_row(done, "NOT SO", "malloc"), done)


def forbid(calls):
    """As containers do: these calls end in EPERM from here on."""
    code = [(0x20, 0, 0, 0)]  # the number of the call
    for i, call in enumerate(calls):
        code.append((0x15, len(calls) - i, 0, call))
    code += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]
    program = b"".join(struct.pack("=HBBI", *line) for line in code)
    block = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(block)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter")


def container():
    if platform.machine() != "x86_64" or is_sanitized:
        skip("calls are forbidden by their number on x86-64")
        return
    for calls in ((238,), (237, 238, 239)):  # set_mempolicy; mbind and get_mempolicy too
        done = run("--node", "0", "sh", "-c", "echo it ran",
                   preexec_fn=lambda calls=calls: forbid(calls))
        check("where policies are forbidden the program runs",
              done.stdout == "it ran\n" and has_row(done, "left", "memory"), done)
        done = run("--node", "0", "--membind", "strict", "sh", "-c", "echo it ran",
                   preexec_fn=lambda calls=calls: forbid(calls))
        check("but not if they were asked for", done.returncode == 4 and not done.stdout, done)


statuses()
environment()
signals()
container()
package()
if is_sanitized:
    skip("proofs: the sanitizer's malloc is in the way")
else:
    proofs()
    allocator()
    affinity()
    broken_library()
sys.exit(failed != 0)
