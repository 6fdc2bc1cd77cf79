# SPDX-License-Identifier: Apache-2.0
"""Programs with pages, and devices of a text file, for the tests of `drystone live`."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

MIB, GIB = 1 << 20, 1 << 30
UNKNOWN = 2**64 - 1


class Program:
    """A show_page that does as it is told."""

    def __init__(self, maker, folder, name="train", rank=-1, world=-1, labels=""):
        self.process = subprocess.Popen(
            [maker, folder, name, str(rank), str(world), labels or "\\x00"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.page = self.process.stdout.readline().strip()
        assert self.page.startswith("drystone-live-"), self.page

    def send(self, *words):
        """Say a command; wait_done() has its answer."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def wait_done(self):
        answer = self.process.stdout.readline().split()
        assert answer and answer[-1] == "done", answer
        return answer[:-1]

    def tell(self, *words):
        self.send(*words)
        return self.wait_done()

    def end(self, how=None):
        if how == "kill":
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()


@contextlib.contextmanager
def growing(step):
    """Call step() with the seconds since the beginning, again and again. Gives the longest pause."""
    is_over, pause = threading.Event(), [0]

    def run():
        begin = last = time.monotonic()
        while not is_over.wait(0.05):
            step(time.monotonic() - begin)
            last, before = time.monotonic(), last
            pause[0] = max(pause[0], last - before)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield pause
    finally:
        is_over.set()
        thread.join()


def measure_in_peace(measure, *words, pause=0.2):
    """What measure() returns behind its pause, which is short: a busy machine is no measure."""
    for _ in range(100):
        longest, *found = measure(*words)
        if longest < pause:
            return found
    raise AssertionError("the machine is too busy")


class Machine:
    """A folder of pages, and a driver that knows what devices() was told."""

    def __init__(self, tool, maker, nvml):
        self.tool, self.maker, self.nvml = (pathlib.Path(p).resolve()
                                            for p in (tool, maker, nvml))
        parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.home = tempfile.TemporaryDirectory(prefix="drystone-test-", dir=parent)
        self.folder = pathlib.Path(self.home.name)
        self.programs = []
        self.facts = self.folder / "nvml.txt"

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for program in self.programs:
            if program.process.poll() is None:
                program.end()
        self.home.cleanup()

    def start(self, *words, **more):
        program = Program(self.maker, self.folder, *words, **more)
        self.programs.append(program)
        return program

    def devices(self, *lines):
        self.facts.write_text("".join(line + "\n" for line in lines))

    def environment(self):
        more = {"LD_LIBRARY_PATH": str(self.nvml.parent), "DRY_TEST_NVML": str(self.facts)}
        plain = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        return {**plain, **(more if self.facts.exists() else {})}

    def words(self, *words):
        no_driver = [] if self.facts.exists() else ["--no-driver"]
        return [str(self.tool), "live", "--folder", str(self.folder), *no_driver, *map(str, words)]

    def live(self, *words, code=0):
        done = subprocess.run(self.words(*words), env=self.environment(), capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False)
        assert done.returncode == code, (words, done)
        return done.stdout if code == 0 else done.stderr

    def json(self, *words):
        return json.loads(self.live("--json", *words))
