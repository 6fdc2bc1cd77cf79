# SPDX-License-Identifier: Apache-2.0
"""The pinned cache: `bench/run pinned [short]`

Pairs of alloc and free, by size and by threads, on a pin that is only a model. Then a training
loop's requests (batches of a loader, gradients and parameters of a model like DeepSeek-V3 on
their way, the optimizer's state, checkpoints), under PyTorch's powers of two, the buddy
blocks of pytorch #181094 and fit:

    first, tail   seconds in alloc and free over the first 50 steps and the next 50; pinning
                  counts by a model, s/GiB in brackets, the rest is measured
    rounded       bytes of the blocks to bytes asked for
    peak          most that was pinned to most that was in use at once, as asked for
    cleared       what a clear at the end leaves pinned, to what is still in use

Before it: how much of 28 GiB can be in use, as asked for, when the first request fails, of
programs that take five blocks for three they free (usable), by the sizes they ask for.

Then, at the sizes of the published experiment, matrices of 28 GiB in all that go, and between
them some 18,000 requests of 1 KiB to 1 MiB that stay: GiB pinned at the peak and after a clear,
where matrices of 4 GiB are in use at once, and where all are; beside them what was published.

Last the loop at 1/64 of the sizes, pinned for real by mlock.
"""
import json
import pathlib
import subprocess
import tempfile

GIB = 2 ** 30
PUBLISHED = {  # pytorch #181094, 32 H100s: reserved GB at the peak, after empty_cache()
    "powers of two": (8.394, 3.658),
    "buddy 4 GiB x 7, T 4 MiB": (32.334, 3.672),
    "buddy 4 GiB x 7, T 0": (36.441, 36.441),
}


def results_of(program, *arguments):
    done = subprocess.run([program, *arguments], text=True, stdout=subprocess.PIPE,
                          check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def name_of(size):
    for unit, name in ((GIB, "GiB"), (2 ** 20, "MiB"), (2 ** 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def print_pairs(results):
    pairs = [r for r in results if r["bench"] == "pair"]
    sizes = sorted({r["bytes"] for r in pairs})
    print(f"\n{'alloc + free, ns':18}" + "".join(f"{name_of(size):>9}" for size in sizes))
    for kind in ("hit", "split"):
        row = {r["bytes"]: r["ns"] for r in pairs if r["kind"] == kind}
        print(f"{kind:18}" + "".join(f"{row[size]:9.0f}" for size in sizes))
    row = {r["bytes"]: r["ns"] for r in results if r["bench"] == "ring"}
    print(f"{'random, 64 live':18}" + "".join(f"{row[size]:9.0f}" for size in sizes))
    threads = [r for r in results if r["bench"] == "threads"]
    counts = sorted({r["threads"] for r in threads})
    print(f"\n{'CPU ns a pair':18}" + "".join(f"{f'{c} thr.':>9}" for c in counts))
    for size in sorted({r["bytes"] for r in threads}):
        row = {r["threads"]: r["cpu_ns"] for r in threads if r["bytes"] == size}
        print(f"{name_of(size):18}" + "".join(f"{row[count]:9.0f}" for count in counts))


def print_fill(results):
    policies = list(dict.fromkeys(r["policy"] for r in results))
    print(f"\n{'28 GiB, until it is full':28}" + "".join(f"{p:>17}" for p in policies))
    print(f"{'':28}" + f"{'usable':>9}{'rounded':>8}" * len(policies))
    for sizes in dict.fromkeys(r["sizes"] for r in results):
        row = [r for r in results if r["sizes"] == sizes]
        print(f"{sizes:28}" + "".join(f"{r['usable']:9.1%}{r['rounded_ratio']:8.3f}"
                                      for r in row))


def print_loop(title, results):
    if not results:
        print(f"\n{title}: not to be had here (see ulimit -l)")
        return
    print(f"\n{title:30}{'first s':>9}{'tail ms':>9}{'rounded':>9}{'peak GiB':>9}"
          f"{'peak':>7}{'cleared':>8}")
    for r in results:
        cost = f" [{r['pin_cost']:.2f}]" if r["pin_cost"] else ""
        print(f"{r['policy'] + cost:30}{r['first_s']:9.3f}{r['tail_s'] * 1e3:9.2f}"
              f"{r['rounded_ratio']:9.3f}{r['pinned_peak'] / GIB:9.2f}"
              f"{r['pinned_peak'] / r['needed_peak']:7.3f}"
              f"{r['after_clear'] / r['needed_after']:8.3f}")


def print_kind(results):
    waves = sorted({r["wave"] for r in results})
    heads = [f"{wave // GIB} GiB at once" for wave in waves] + ["published, GB"]
    print(f"\n{'small ones stay, large go, GiB':30}" + "".join(f"{h:>16}" for h in heads))
    print(f"{'':30}" + f"{'peak':>8}{'cleared':>8}" * len(heads))
    for policy in dict.fromkeys(r["policy"] for r in results):
        row = {r["wave"]: r for r in results if r["policy"] == policy}
        cells = [row[wave][name] / GIB for wave in waves
                 for name in ("pinned_peak", "after_clear")]
        print(f"{policy:30}" + "".join(f"{c:8.2f}" for c in cells) +
              "".join(f"{c:8.2f}" for c in PUBLISHED.get(policy, ())))
    asked = "".join(f"{'':8}{next(r for r in results if r['wave'] == wave)['needed_after'] / GIB:8.2f}"
                    for wave in waves)
    print(f"{'in use after it, as asked for':30}{asked}")


def run(short, machine, build):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder, ["bench/bench_pinned"])
        program = folder / "bench/bench_pinned"
        print(machine)
        print_pairs(results_of(program, "pairs", "50000" if short else "1000000"))
        print_fill(results_of(program, "fill"))
        steps = "20" if short else "50"
        print_loop("a training loop", results_of(program, "loop", steps, steps))
        print_kind(results_of(program, "kind"))
        print_loop("at 1/64, by mlock", results_of(program, "real"))
