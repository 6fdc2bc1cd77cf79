# SPDX-License-Identifier: Apache-2.0
"""What a dry run costs, and whether it ends cleanly: `bench/run dry_run [short]`

GPT-2 of 124 million weights to where its steps repeat, beside the floor: the same program that
ends when its model is on the device. Then small programs in a row, each of which has a thread of
autograd at its end. The wheel is in the folder $DRY_TEST_TORCH (scripts/get_torch.py makes one).
"""
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARDS = ("h100-80", "b300-288")  # host memory must not follow the card's


def run_once(tool, folder, words, card="h100-80"):
    """The seconds it took, its standard error, and its exit status."""
    env = dict(os.environ, PYTHONPATH=os.environ["DRY_TEST_TORCH"])
    env.pop("TORCH_USE_RTLD_GLOBAL", None)
    begin = time.monotonic()
    done = subprocess.run([tool, "dry-run", "--json", "--card", card, "-o", folder / "x.pickle",
                           "--", sys.executable, *words], env=env, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return time.monotonic() - begin, done.stderr, done.returncode


def measure_memory(tool, folder, card):
    """The largest resident set of a child, in MB. Children are counted together: one a process."""
    pid = os.fork()
    if pid == 0:
        code = run_once(tool, folder, [ROOT / "bench/gpt2.py", "8"], card)[2]
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        (folder / "rss").write_text(str(peak))
        os._exit(code)
    os.waitpid(pid, 0)
    return int((folder / "rss").read_text()) * 1024 / 1e6


def run(is_short, machine, build):
    if not os.environ.get("DRY_TEST_TORCH"):
        sys.exit("DRY_TEST_TORCH: no wheel; scripts/get_torch.py makes one")
    rounds, ends = (3, 10) if is_short else (7, 100)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["tool/drystone", "standin/libdrystone-standin.so"])
        tool = folder / "build/tool/drystone"
        floors, totals, steps, failed = [], [], [], 0
        for _ in range(rounds):
            floors.append(run_once(tool, folder, [ROOT / "bench/gpt2.py", "build"])[0])
            seconds, errors, code = run_once(tool, folder, [ROOT / "bench/gpt2.py", "8"])
            totals.append(seconds)
            steps += [float(ms) for ms in re.findall(r"step ([\d.]+)", errors)]
            failed += code != 0
        memory = {card: measure_memory(tool, folder, card) for card in CARDS}
        small = ROOT / "test/dryrun/programs/mlp_sgd.py"
        failed += sum(run_once(tool, folder, [small])[2] != 0 for _ in range(ends))
    floor, total = statistics.median(floors), statistics.median(totals)
    print(machine)
    print(f"{'':28} measured  demanded")
    print(f"{'import, model, no step':28} {floor:6.2f} s         -")
    print(f"{'GPT-2 to its repeated step':28} {total:6.2f} s         -")
    print(f"{'the dry run adds':28} {total - floor:6.2f} s    <= 3 s")
    print(f"{'a step':28} {statistics.median(steps):5.1f} ms  <= 30 ms")
    for card, megabytes in memory.items():
        print(f"{'host memory, ' + card:28} {megabytes:5.0f} MB    1000 MB and the program's own")
    print(f"{'runs that failed':28} {failed:3} of {ends + rounds}         0")
    sys.exit(1 if failed else 0)
