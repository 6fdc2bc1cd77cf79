# SPDX-License-Identifier: Apache-2.0
"""Snapshots for tests: one made here, and real recordings where there are some.

Data frames are those that are installed, or in the folder $DRY_TEST_FRAMES.
"""
import os
import pathlib
import pickle
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRACES = pathlib.Path(os.environ.get("DRY_TEST_TRACES") or ROOT.parent / "shared/traces")
MIB = 1 << 20

sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/support")]
if os.environ.get("DRY_TEST_FRAMES"):
    sys.path.insert(0, os.environ["DRY_TEST_FRAMES"])

from said import main  # noqa: E402, F401


def _frames(*lines):
    return [{"name": name, "filename": file, "line": line} for name, file, line in lines]


def make_event(action, address, size, time_us, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us,
            **more}


def make_snapshot(pairs=40, name="step"):
    """As torch.cuda.memory._snapshot() has it: a segment, and allocs of which half stay."""
    base, size = 0x7F0000000000, 2 * MIB
    frames = _frames(("forward", "model.py", 7), (name, "train.py", 12))
    events = [make_event("segment_alloc", base, 2 * pairs * size, 1000, frames=frames)]
    blocks = []
    for i in range(2 * pairs):
        address = base + i * size
        events.append(make_event("alloc", address, size, 1001 + 2 * i, frames=frames,
                                 user_metadata=f"layer {i % 3}"))
        if i % 2:
            events.append(make_event("free_requested", address, size, 1002 + 2 * i))
            events.append(make_event("free_completed", address, size, 1002 + 2 * i))
        blocks.append({"address": address, "size": size, "requested_size": size,
                       "state": "inactive" if i % 2 else "active_allocated",
                       "frames": [] if i % 2 else frames})
    segment = {"device": 0, "address": base, "total_size": 2 * pairs * size,
               "allocated_size": pairs * size, "active_size": pairs * size,
               "requested_size": pairs * size, "stream": 0, "segment_type": "large",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames,
               "blocks": blocks}
    return {"segments": [segment], "device_traces": [events],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "",
                                   "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                   "expandable_segments": False}}


def write_snapshot(folder, value=None, file="run.pickle"):
    path = os.path.join(folder, file)
    with open(path, "wb") as out:
        pickle.dump(make_snapshot() if value is None else value, out, protocol=4)
    return path


def recordings():
    """The real pickles; none where there are none."""
    return sorted(TRACES.glob("pytorch/*.pickle"))
