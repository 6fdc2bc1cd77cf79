#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel as it is published: made, looked into, installed, used and taken away again.

The compiler and the libraries come from the registries: without them this is skipped. The folder
$DRY_TEST_TORCH (scripts/get_torch.py makes it) has the PyTorch whose shim goes into the wheel, and
with which it is tried; without it the wheel has only shims that lie in build-shims/ already.
"""
import fcntl
import json
import os
import pathlib
import platform
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import urllib.request
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/support"))

import said  # noqa: E402

torch_folder = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
has_torch = (torch_folder / "torch/include/c10/cuda/CUDACachingAllocator.h").is_file()
SIZE_MAX = 15_000_000
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread)\.so\.\d+|ld-linux-\S+")
BINARIES = ("bin/drystone", "lib/libdrystone.so.0", "lib/drystone/libdrystone-standin.so")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
USE = """
import ctypes, drystone, drystone.plan
from drystone._library import load_library
assert isinstance(load_library(), ctypes.CDLL)
assert drystone.plan.knapsack([3, 4, 5], [4, 5, 10], 8) == [0, 2]
print(drystone.find_command(), drystone.find_library(), sep="\\n")
"""

USE_SHIM = """
import torch
import drystone.torch as dt
dt.enable(PLACEMENT, seam="native")
kept = torch.empty(1 << 20, device="cuda")
assert torch.cuda.get_allocator_backend() == "drystone"
assert torch.cuda.memory_allocated() == 4 << 20
assert torch.cuda.memory_stats()["allocation.all.current"] == 1
blocks = [block for segment in torch.cuda.memory._snapshot()["segments"]
          for block in segment["blocks"] if block["state"] == "active_allocated"]
assert [(block["address"], block["size"]) for block in blocks] == [(kept.data_ptr(), 4 << 20)]
with open("/proc/self/maps") as maps:
    found = {line.split()[-1] for line in maps if "libdrystone_torch" in line}
assert [name.split("/")[-4:-1] for name in found] == [["drystone", "torch", "shims"]], found
"""


def environment():
    """Without what points at another Drystone."""
    return {name: value for name, value in os.environ.items()
            if name not in ("DRYSTONE", "DRYSTONE_LIBRARY", "PYTHONPATH")}


def call(*words, where, **variables):
    return subprocess.run([str(word) for word in words], cwd=where, capture_output=True,
                          text=True, check=False, env={**environment(), **variables})


def read(terminal):
    """What a program wrote; nothing once it has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def read_until(terminal, text):
    """All up to the text, or to the program's end."""
    told = b""
    while text not in told:
        more = read(terminal)
        if not more:
            break
        told += more
    return told


def files_in(folder):
    return {path for path in folder.rglob("*") if not path.is_dir()}


class Contents(unittest.TestCase):
    def test_one_wheel_is_for_all_pythons(self):
        tag = f"-py3-none-manylinux_2_28_{platform.machine()}.whl"
        self.assertTrue(wheel.name.endswith(tag), wheel.name)
        self.assertLessEqual(wheel.stat().st_size, SIZE_MAX)

    def test_what_the_package_is_made_of_is_there(self):
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
        wanted = {f"drystone/{name}" for name in (*BINARIES, "py.typed")}
        for place, inside, pattern in (("python/drystone", "", "*.py"),
                                       ("include/drystone", "include/drystone/", "*.h"),
                                       ("standin/hook", "lib/drystone/hook/", "*.py")):
            wanted |= {f"drystone/{inside}{path.relative_to(ROOT / place)}"
                       for path in (ROOT / place).rglob(pattern)}
        wanted.add("drystone/lib/drystone/drystone.html")
        self.assertEqual(wanted - names, set())
        schema = ".data/data/share/drystone/schema/info.schema.json"
        self.assertTrue(any(name.endswith(schema) for name in names))
        self.assertFalse([name for name in names if "__pycache__" in name])

    def test_only_the_c_library_is_needed(self):
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
            for name in BINARIES:
                path = archive.extract(f"drystone/{name}", folder)
                said = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True,
                                      check=True).stdout
                needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
                self.assertIn("libc.so.6", needed)
                self.assertEqual([n for n in needed if not SYSTEM.fullmatch(n)], [], name)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.venv = cls.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", cls.venv], check=True)
        cls.before = files_in(cls.venv)
        cls.python, cls.drystone = cls.venv / "bin/python", cls.venv / "bin/drystone"
        subprocess.run([cls.python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def call(self, *words, **variables):
        return call(*words, where=self.folder, **variables)

    def test_the_command_runs(self):
        for words in ([self.drystone], [self.python, "-m", "drystone"]):
            done = self.call(*words, "--version")
            self.assertEqual(done.stdout.split()[0], "drystone", done)

    def test_the_main_job_is_done(self):
        self.assertEqual(self.call(self.drystone, "demo", "--yes").returncode, 0)
        done = self.call(self.python, "-m", "drystone", "info", "drystone-demo.pickle")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("PyTorch memory snapshot", done.stdout)

    def test_the_server_answers(self):
        self.call(self.drystone, "demo", "--yes")
        words = [self.drystone, "view", "drystone-demo.pickle"]
        with subprocess.Popen(words, cwd=self.folder, env=environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            address = server.stdout.readline().strip()
            try:
                with DIRECT.open(f"{address}a/about", timeout=60) as reply:
                    self.assertEqual(json.load(reply)["kind"], "serve")
            finally:
                server.terminate()
        self.assertEqual(server.returncode, 0)

    def test_a_terminal_is_drawn_on(self):
        self.call(self.drystone, "demo", "--yes")
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        with subprocess.Popen([self.drystone, "view", "--terminal", "drystone-demo.pickle"], cwd=self.folder,
                              env={**environment(), "TERM": "xterm"}, stdin=its, stdout=its,
                              stderr=subprocess.PIPE) as shown:
            os.close(its)
            drawn = read_until(ours, b"keys")
            os.write(ours, b"q")
            while read(ours):
                pass
            error = shown.stderr.read()
        os.close(ours)
        self.assertEqual((shown.returncode, error), (0, b""))
        self.assertIn(b"drystone-demo.pickle", drawn)

    def test_a_dry_run_without_torch_is_refused(self):
        done = self.call(self.drystone, "dry-run", "--", self.python, "-c", "pass")
        self.assertEqual(done.returncode, 3, done)
        self.assertRegex(done.stderr, r"^drystone: dry-run: .*: this Python has no torch")

    def test_the_package_finds_its_own(self):
        done = self.call(self.python, "-c", USE, PATH="/usr/bin:/bin")
        self.assertEqual(done.returncode, 0, done)
        for line in done.stdout.split():
            self.assertTrue(line.startswith(str(self.venv)), line)

    def test_the_script_does_not_call_itself(self):
        done = self.call(self.drystone, "--version", DRYSTONE=str(self.drystone))
        self.assertEqual(done.returncode, 0, done)

    @unittest.skipUnless(has_torch, "no PyTorch in DRY_TEST_TORCH")
    def test_a_shim_is_there_without_a_compiler(self):
        cache = self.folder / "cache"
        for placement in ("torch", "paged"):
            done = self.call(self.drystone, "dry-run", "--", self.python, "-c",
                             USE_SHIM.replace("PLACEMENT", repr(placement)),
                             PATH=str(self.venv / "bin"), PYTHONPATH=str(torch_folder),
                             XDG_CACHE_HOME=str(cache))
            self.assertEqual(done.returncode, 0, done)
        self.assertEqual(list(cache.rglob("*.so")), [])

    def test_what_cannot_be_executed_is_a_line(self):
        done = self.call(self.drystone, "--version", DRYSTONE="/no/such/command")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, r"^drystone: .*No such file[^\n]*\n$")

    def test_z_uninstalled_nothing_is_left(self):
        subprocess.run([self.python, "-m", "pip", "uninstall", "-qy", "drystone"], check=True)
        self.assertEqual(files_in(self.venv) - self.before, set())


def make_shim():
    """The shim for the PyTorch at hand, as those of a published wheel are made."""
    words = [ROOT / "build-shims/tested", "--installed", torch_folder, "--target",
             platform.machine()]
    done = subprocess.run([sys.executable, ROOT / "scripts/make_shims.py", *words],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)


def make():
    """The wheel's path. Skips where the registries give nothing."""
    if has_torch:
        make_shim()
    out = ROOT / "build-wheel/tested"
    page = ROOT / "viewer/page.html"  # in the place of the one with the engine, which takes long
    done = subprocess.run([sys.executable, ROOT / "packaging/make_wheel.py", "--out", out, "--quick",
                           "--page", page], capture_output=True, text=True, check=False)
    if done.returncode == 4:
        print(f"SKIPPED: {done.stderr.strip()}")
        sys.exit(said.SKIPPED)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return pathlib.Path(done.stdout.split(": ")[0])


if __name__ == "__main__":
    wheel = make()
    said.main()
