#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dry run held against a recording from a real GPU: the same requests, the same peaks?

    truth.py RECORDING.pickle DRYRUN.pickle [--device N] [--dry-device N] [--requests N]
             [--tool PATH] [--json]

Both are snapshots of PyTorch, or a program's own dump of its snapshot under a dry run. The trace
of one device of the recording is a window, which may begin in the middle of a run. Its place
in the trace of the dry run is found first: where its first requests occur, and as much is in use.

Requests are compared in order. Where the two differ, the shortest way back to equal requests is
taken, and what was passed over on either side is counted and told. Peaks are those of the window:
reserved and requested bytes follow from the segments at the dump and the trace backwards; active
bytes, which know of blocks that were not split, from `drystone replay` ($DRYSTONE or --tool).
--requests compares the first N alone, of a recording whose rest depends on data nobody has.

Exit status: 0 the requests are the same and the peaks of requested bytes equal; 1 they differ.
"""
import argparse
import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile

GROWS = {"segment_alloc", "segment_map"}
SHRINKS = {"segment_free", "segment_unmap"}
PREFIX = 64     # so many requests place a window
LEAST = 6       # and never fewer
REGAINED = 12   # so many equal requests in a row end a difference
REACH = 3000    # so many requests are looked through for them
SHOWN = 8


class Plain(pickle.Unpickler):
    """Reads dict, list, str and numbers; a recording that names anything else is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"names {module}.{name}")

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("has persistent ids")


def load(path):
    with open(path, "rb") as file:
        return Plain(file).load()


def place_of(frames, program_only=True):
    """file:line of the innermost frame in Python that is not PyTorch's own; no folders."""
    python = [(frame["filename"].replace("\\", "/"), frame["line"]) for frame in frames or []
              if frame.get("filename", "").endswith(".py")]
    for name, line in python:
        if not program_only or "/torch/" not in name:
            return f"{os.path.basename(name)}:{line}"
    return f"torch/{os.path.basename(python[0][0])}:{python[0][1]}" if python else "?"


def requested_at_end(segments):
    total = 0
    for block in itertools.chain.from_iterable(segment["blocks"] for segment in segments):
        if block["state"] == "inactive":
            continue
        if "requested_size" in block:
            total += block["requested_size"]
        else:  # PyTorch before 2.1
            total += sum(part["real_size"] for part in block.get("history", [])[:1])
    return total


class Window:
    """The trace of one device, and what was requested and reserved at each of its events."""

    def __init__(self, path, device):
        snapshot = load(path)
        traces = snapshot["device_traces"]
        if device is None:
            device = max(range(len(traces)), key=lambda i: len(traces[i]))
        self.path, self.device = path, device
        self.events = traces[device]
        segments = [s for s in snapshot["segments"] if s.get("device", 0) == device]
        self.at = [i for i, e in enumerate(self.events) if e["action"] == "alloc"]
        self.sizes = [self.events[i]["size"] for i in self.at]
        self.requested = self.curve(requested_at_end(segments), "alloc", "free_completed", "free")
        self.reserved = self.curve(sum(s["total_size"] for s in segments), GROWS, SHRINKS)
        self.conf = (snapshot.get("allocator_settings") or {}).get("PYTORCH_CUDA_ALLOC_CONF")

    def curve(self, end, up, *down):
        """The values before the first event and after each."""
        up = {up} if isinstance(up, str) else up
        down = set().union(*({name} if isinstance(name, str) else name for name in down))
        steps = [event["size"] * ((event["action"] in up) - (event["action"] in down))
                 for event in self.events]
        return list(itertools.accumulate(steps, initial=end - sum(steps)))

    def peak(self, curve, first, end):
        """The peak from request `first` on, up to what lies before request `end`."""
        begin = self.at[first] if first < len(self.at) else len(self.events)
        until = self.at[end] if end < len(self.at) else len(self.events)
        return max(curve[begin if first else 0:until + 1])


# --- the place of the window, and what is the same ------------------------------------------


def find_offset(real, dry, size):
    """Where the recording's first requests occur, and how many placed it.

    Of several places: with as much in use before, then with the most equal requests, the last.
    """
    length = min(PREFIX, size)
    while length >= min(LEAST, size) > 0:
        head = real.sizes[:length]
        found = [i for i in range(len(dry.sizes) - length + 1)
                 if dry.sizes[i] == head[0] and dry.sizes[i:i + length] == head]
        if found:
            base = real.requested[real.at[0]]
            apart = [abs(dry.requested[dry.at[i]] - base) for i in found]
            near = [i for i, bytes_apart in zip(found, apart) if bytes_apart == min(apart)]
            same = [sum(map(int.__eq__, real.sizes[:size], dry.sizes[i:i + size])) for i in near]
            return max(zip(same, near))[1], length
        length //= 2
    return 0, 0


def regain(real, dry, i, j):
    """The fewest requests to pass over on both sides until they are equal again, or None."""
    ends = min(REGAINED, len(real) - i, len(dry) - j)
    places = {}
    for b in range(min(REACH, len(dry) - j - ends + 1)):
        places.setdefault(tuple(dry[j + b:j + b + ends]), []).append(b)
    best = None
    for a in range(min(REACH, len(real) - i - ends + 1)):
        if best and a >= sum(best):
            break
        near = places.get(tuple(real[i + a:i + a + ends]))
        if near and (best is None or a + near[0] < sum(best)):
            best = (a, near[0])
    return best


def align(real, dry, offset):
    """(how many match, [(index in real, in dry, passed over in real, in dry)], end in dry)."""
    i, j, matched, gaps = 0, offset, 0, []
    while i < len(real) and j < len(dry):
        if real[i] == dry[j]:
            i, j, matched = i + 1, j + 1, matched + 1
            continue
        skip = regain(real, dry, i, j)
        if skip is None:
            break
        gaps.append((i, j, *skip))
        i, j = i + skip[0], j + skip[1]
    if i < len(real):
        gaps.append((i, j, len(real) - i, len(dry) - j))
        j = len(dry)
    return matched, gaps, j


# --- active bytes ---------------------------------------------------------------------------


def active_peak(tool, window, first, end):
    """(the peak of active bytes, what is to be said of it); (None, why) if it cannot be had."""
    if not tool:
        return None, "no drystone"
    with tempfile.TemporaryDirectory() as folder:
        decisions = os.path.join(folder, "decisions")
        words = [tool, "replay", "--json", "--device", str(window.device),
                 "--decisions", decisions, window.path]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            return None, done.stderr.strip().splitlines()[-1]
        result = json.loads(done.stdout)
        check, run = result["self_check"], result["runs"][0]
        said = "exact" if check["exact"] else f"{check['allocs_matched']}/{check['allocs']} exact"
        whole = first == 0 and end >= len(window.sizes)
        if whole or check["live_before"]:
            said += "" if whole else ", of the whole trace"
            return run["stats"]["active_bytes.all.peak"], said
        with open(decisions, encoding="utf-8") as file:
            return peak_of_decisions(file, first, end), said


def peak_of_decisions(lines, first, end):
    sizes, now, peak, count = {}, 0, 0, 0
    for line in lines:
        word = line.split()
        if word[0] == "alloc":
            if count == end:
                break
            count += 1
            sizes[word[1]] = int(word[4])
            now += sizes[word[1]]
        elif word[0] == "free":
            now -= sizes.pop(word[1], 0)
        if count > first:
            peak = max(peak, now)
    return peak


# --- the report -----------------------------------------------------------------------------


def describe(real, dry, gap):
    i, j, a, b = gap

    def tell(window, at, count):
        events = [window.events[k] for k in window.at[at:at + min(count, SHOWN)]]
        return [{"bytes": e["size"], "at": place_of(e.get("frames"))} for e in events]

    return {"request": i, "dry_request": j, "passed": a, "dry_passed": b,
            "real": tell(real, i, a), "dry": tell(dry, j, b)}


def compare(real, dry, tool, size):
    offset, prefix = find_offset(real, dry, size)
    is_whole = size == len(real.sizes)
    matched, gaps, end = align(real.sizes[:size],
                               dry.sizes if is_whole else dry.sizes[:offset + size], offset)
    result = {"requests": size, "of": len(real.sizes), "matched": matched,
              "dry_requests": end - offset, "dry_total": len(dry.sizes), "offset": offset,
              "placed_by": prefix,
              "passed": sum(g[2] for g in gaps), "dry_passed": sum(g[3] for g in gaps),
              "conf": [real.conf, dry.conf], "gaps": len(gaps)}
    for name in ("requested", "reserved"):
        result[name] = [real.peak(getattr(real, name), 0, size),
                        dry.peak(getattr(dry, name), offset, end)]
    active, said = zip(active_peak(tool, real, 0, size), active_peak(tool, dry, offset, end))
    result.update(active=list(active), replay=list(said))
    result["in_use_before"] = [real.requested[real.at[0]] if real.at else 0,
                               dry.requested[dry.at[offset]] if dry.at else 0]
    result["calls"] = [sum(e["action"] in GROWS for e in real.events),
                       sum(e["action"] in GROWS for e in dry.events)]
    result["differences"] = [describe(real, dry, gap) for gap in gaps[:SHOWN]]
    return result


def show(result):
    print(f"requests   {result['matched']} of {result['requests']} in order, from request "
          f"{result['offset']} of the dry run's {result['dry_total']}; passed over "
          f"{result['passed']} of the recording, {result['dry_passed']} of the dry run")
    for name in ("requested", "active", "reserved"):
        real, dry = result[name]
        if real is None or dry is None:
            print(f"{name:10} unknown: {result['replay']}")
        else:
            apart = dry - real
            print(f"{name:10} {real:15,} {dry:15,}  {apart:+,} ({apart / max(real, 1):+.3%})")
    print(f"in use before {result['in_use_before']}, replay {result['replay']}, "
          f"conf {result['conf']}")
    for gap in result["differences"]:
        print(f"differs at request {gap['request']} (dry {gap['dry_request']}): passed over "
              f"{gap['passed']} and {gap['dry_passed']}")
        for side in ("real", "dry"):
            for what in gap[side]:
                print(f"    {side:5}{what['bytes']:15,}  {what['at']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording")
    parser.add_argument("dryrun")
    parser.add_argument("--device", type=int, help="of the recording; default: the busiest")
    parser.add_argument("--dry-device", type=int)
    parser.add_argument("--requests", type=int, default=sys.maxsize)
    parser.add_argument("--tool", default=os.environ.get("DRYSTONE"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    real = Window(arguments.recording, arguments.device)
    dry = Window(arguments.dryrun, arguments.dry_device)
    result = compare(real, dry, arguments.tool, min(arguments.requests, len(real.sizes)))
    if arguments.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)
    same = result["matched"] == result["requests"] == result["dry_requests"]
    sys.exit(0 if same and result["requested"][0] == result["requested"][1] else 1)


if __name__ == "__main__":
    main()
