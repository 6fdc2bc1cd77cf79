# SPDX-License-Identifier: Apache-2.0
"""What the programs share: stop(name, value) tells run.py something, and waits to go on."""
import json
import os
import pathlib
import time

OUT = pathlib.Path(os.environ["TEST_OUT"])
PAGES = os.environ["TEST_PAGES"]


def stop(name, value=None):
    """Write the value, and wait until run.py has looked."""
    part = OUT / f"{name}.part"
    part.write_text(json.dumps(value))
    part.rename(OUT / f"{name}.json")
    end = time.monotonic() + 120
    while not (OUT / f"{name}.seen").exists():
        assert time.monotonic() < end, f"nobody looks at {name}"
        time.sleep(0.01)


def switch_history_off(torch):
    """A dry run switches it on when CUDA is first used, and lets nobody end it by its usual name."""
    torch.cuda.init()
    torch.cuda.memory._record_memory_history_impl(None)


def facts(torch, device):
    """What PyTorch says of a device: statistics, and all of its blocks."""
    segments = [segment for segment in torch.cuda.memory_snapshot()
                if segment["device"] == device]
    for segment in segments:
        for block in segment["blocks"]:
            block["frames"] = len(block.get("frames", ()))
        segment.pop("frames", None)
    return {"stats": torch.cuda.memory_stats(device), "segments": segments,
            "total": torch.cuda.get_device_properties(device).total_memory,
            "host": torch.cuda.host_memory_stats(), "process": os.getpid()}
