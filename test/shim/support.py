# SPDX-License-Identifier: Apache-2.0
"""What the programs share: begin() enables the placement, passed() says that all went well."""
import itertools
import json
import os
import pathlib
import sys

OUT = pathlib.Path(os.environ["TEST_OUT"])
PLACEMENT = sys.argv[1]  # "torch", "paged" or "native"


def begin(**options):
    """drystone.torch, with the placement enabled unless it is PyTorch's own."""
    import drystone.torch as dt
    if PLACEMENT != "native":
        dt.enable(PLACEMENT, **options)
    return dt


def passed():
    (OUT / "passed").touch()


def _sorted_frees(trace):
    """The events, with segments that go back one after the other by address."""
    for is_free, run in itertools.groupby(trace, lambda e: e["action"] == "segment_free"):
        yield from sorted(run, key=lambda e: e["addr"]) if is_free else run


def dump(torch):
    """Statistics and snapshot of all devices, for the comparison in run.py."""
    stats = {f"{index}.{key}": value for index in range(torch.cuda.device_count())
             for key, value in torch.cuda.memory_stats(index).items()
             if not key.startswith("drystone.")}
    snapshot = torch.cuda.memory._snapshot()
    streams = {0: 0}  # numbers in place of handles, which are addresses

    def rename(entry):
        entry["stream"] = streams.setdefault(entry["stream"], len(streams))

    for trace in snapshot["device_traces"]:
        for event in trace:
            rename(event)
    for segment in snapshot["segments"]:
        rename(segment)
        segment.pop("frames", None)
        segment.pop("forward_frames", None)
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                block.pop("requested_size")
    for event in (event for trace in snapshot["device_traces"] for event in trace):
        event.pop("time_us")
        frames = [frame["name"] for frame in event.pop("frames", [])]
        event["frames"] = frames
    events = [[event, index] for index, trace in enumerate(snapshot["device_traces"])
              for event in _sorted_frees(trace)]
    text = json.dumps({"stats": stats, "segments": snapshot["segments"], "events": events})
    (OUT / "dump.json").write_text(text)
