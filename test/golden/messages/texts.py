#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real wordings of messages are found, read and judged, and nothing is invented: texts.py TOOL

test/data/messages has 80 texts with labels.json, which was written before the tool read them, 20
logs without a failure, a second set of 40 and 10, and a README.md on all. Each text is also tried
under the prefixes of other programs and wrapped; 10,000 lines of ordinary logs are made here.
"""
import json
import pathlib
import random
import re
import subprocess
import sys

tool = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(__file__).resolve().parents[2] / "data" / "messages"
failures = []


def explain(text):
    """The messages of a text, and how many there are."""
    done = subprocess.run([tool, "explain", "--message", "-", "--json"], input=text,
                          capture_output=True)
    if b"no OOM message" in done.stderr:
        return [], 0
    report = json.loads(done.stdout)
    return report["messages"], report["count"]


def figures_of(message):
    """All numbers of a message: name, low, high. A number below 0 has its sign."""
    for name, value in message.items():
        if isinstance(value, dict) and "low" in value:
            yield name, value["low"], value["high"]
    for process in message["processes"]:
        yield "others", process["memory"]["low"], process["memory"]["high"]
    for figure in message["figures"]:
        if isinstance(figure["value"], dict):
            low, high = figure["value"]["low"], figure["value"]["high"]
            yield (figure["name"], *((-high, -low) if figure["is_negative"] else (low, high)))


def words_of(message):
    return " ".join(step["why"] + " " + (step["code"] or "") for step in message["steps"])


def is_proved(verdict):
    return verdict["is_certain"] and not verdict["alternatives"]


def check(label, text, how):
    """Compare what is found with a label. A wrapped text may lose numbers."""
    def complain(what):
        failures.append(f"{label['file']}, {how}: {what}")
    messages, count = explain(text)
    if not label["count"] <= count <= label["count_max"]:
        complain(f"{count} messages, expected {label['count']} to {label['count_max']}")
    kinds = sorted({m["kind"] or m["form"] for m in messages})
    if kinds != label["kinds"]:
        complain(f"{kinds}, expected {label['kinds']}")
    causes = {m["verdict"]["cause"] for m in messages}
    if not causes <= set(label["cause"].split("+")):
        complain(f"{causes}, expected {label['cause']}")
    if label["is_proved"] not in {is_proved(m["verdict"]) for m in messages}:
        complain(f"is_proved is not {label['is_proved']}")
    found = [figure for m in messages for figure in figures_of(m)]
    for name, value in label["figures"]:
        if name in label.get("unread", ()):
            continue
        if how == "bare" and not any(name == n and low <= value <= high for n, low, high in found):
            complain(f"no {name} of {value}")
    words = " ".join(words_of(m) for m in messages)
    for change in label["change"]:
        if how == "bare" and change not in words:
            complain(f"no word of {change}")


def prefixed(prefix):
    return lambda text: b"".join(prefix + line for line in text.splitlines(True))


def wrapped(text):
    """Break lines at 80 columns, without colours."""
    text = re.sub(rb"\x1b\[[0-9;]*m", b"", text)
    return b"".join(line[at:at + 80] + b"\n" for line in text.split(b"\n")
                    for at in range(0, max(len(line), 1), 80))


ways = {
    "bare": lambda text: text,
    "rank": prefixed(b"[rank3]: "),
    "journald": prefixed(b"Nov 08 09:14:02 gpu-07 trainer[48213]: "),
    "docker": prefixed(b"trainer-1  | "),
    "ray": prefixed(b"(RayTrainWorker pid=77120, ip=10.0.4.19) "),
    "wrapped": wrapped,
}


def ordinary_line(chance):
    """A line of a log in which nothing failed, though many speak of memory."""
    n, f, name = chance.randrange(10**6), chance.random() * 100, chance.choice(
        ["loader", "trainer", "api", "scheduler", "kubelet", "worker-7"])
    return chance.choice([
        f"step {n} | loss {f:.4f} | lr 2.9e-04 | mem(alloc/peak/reserved) {f:.2f}/{f:.2f}/80.00 GiB",
        f"{name}: allocated {f:.2f} GiB, {n} bytes free, memory usage {f:.1f}%",
        f"2026-11-10 08:{n % 60:02}:01 INFO {name} free memory {f:.2f} GiB of 79.19 GiB",
        f"[rank{n % 8}]: W1108 Memory: {n} pages in use, limit {n}",
        f"INFO 05-02 [gpu_worker.py:227] Available KV cache memory: {f:.2f} GiB",
        f"INFO 05-02 [gpu_model_runner.py:1347] Model loading took {f:.4f} GiB and {f:.1f} seconds",
        f"Free memory on device ({f:.2f}/{f + 9:.2f} GiB) on startup. Desired GPU memory utilization",
        f"[TP0] Load weight end. type=Llama, avail mem={f:.2f} GB, mem usage={f:.2f} GB.",
        f"MA {f:.2f} GB         Max_MA {f:.2f} GB         CA {f:.2f} GB         Max_CA {n % 80} GB",
        f"CPU Virtual Memory:  used = {f:.2f} GB, percent = {f:.1f}%",
        f"llama_kv_cache_init: CUDA0 KV buffer size = {f:.2f} MiB",
        f"Bin (256): Total Chunks: {n}, Chunks in use: {n}. 3.0KiB allocated for chunks.",
        f"{name} exited with code {n % 3}",
        f"{name} exits with return code = {n % 2}",
        f"  exitcode  : {n % 2} (pid: {n})",
        f"DataLoader worker (pid {n}) exited unexpectedly",
        f"RuntimeError: CUDA error: device-side assert triggered at step {n}",
        f"OSError: [Errno 28] No space left on device: '/data/{n}.bin'",
        f"kernel: Memory: {n}K/{n}K available, oom_score_adj set to {n % 1000}",
        f"NCCL WARN Connection closed by peer {n}; NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P",
        f"GET /v1/models/{n} 200 {f:.1f}ms",
        f"Collecting numpy=={n % 3}.2 ... Requirement already satisfied ({f:.1f} MB)",
        f"{n} Workers started, 0 Workers (tasks / actors) killed due to memory pressure (OOM)",
        f"requests: memory: {n % 64}Gi limits: memory: {n % 64}Gi status Running",
        f"grpc status RESOURCE_EXHAUSTED: quota {n} exceeded, retry in {f:.1f} s",
        f"retry {n}: max seq len {n}, gpu_memory_utilization={f / 100:.2f}",
        f"cudaMalloc {n} ok, cudaErrorMemoryAllocation is 2, cuMemAlloc results in CUDA_SUCCESS",
        f"java.net.ProtocolException: Invalid buffer size: {n}",
        f"slurmstepd: info: job memory limit {n}MB, swap 0",
        f"the docs say: when memory runs out, lower --batch-size {n}",
        f"[W] [TRT] Requested amount of GPU memory ({n} bytes) could not be allocated. Skipping tactic 3",
        f"batch {n}: x = x.pin_memory() took {f:.1f} ms",
        f"worker {n} exceeded memory limit ({n} MB), paused",
        f"systemd-oomd[{n}]: Considered {n % 90} cgroups due to memory pressure for /user.slice",
        f"Possibly too large swap space. {f:.2f} GiB out of the {f + 9:.2f} GiB total CPU memory",
        f"Capture cuda graph begin. avail mem={f:.2f} GB",
        f"[RMM] [error] [A][Stream 0x1][Upstream {n}B][FAILURE maximum pool size exceeded]",
        f"PBS: job {n} has mem {n}kb of limit {n}kb; process {n} exited on signal 15",
        f"Could not allocate tensor with {n} bytes there, moved it to the CPU",
        f"Not enough memory to handle {n} requests at once, queueing; there are {f:.1f}G free",
    ])


texts, logs = 0, {}
for root in folder, folder / "second":
    for label in json.loads((root / "labels.json").read_text()):
        text = (root / "texts" / label["file"]).read_bytes()
        texts += 1
        for how, change in ways.items():
            check(label, change(text), how)
    logs |= {f"{root.name}/{path.name}": path.read_bytes() for path in (root / "none").iterdir()}
chance = random.Random(45)
logs["ordinary"] = "".join(ordinary_line(chance) + "\n" for _ in range(10000)).encode()
for name, text in logs.items():
    for how, change in ways.items():
        messages, count = explain(change(text))
        if count:
            failures.append(f"{name}, {how}: {count} messages, "
                            f"the first at line {messages[0]['line']}: {messages[0]['kind']}")
for failure in failures:
    print(failure)
print(f"{texts} texts and {len(logs)} logs in {len(ways)} ways, {len(failures)} failures")
sys.exit(bool(failures) or texts != 122 or len(logs) != 31)
