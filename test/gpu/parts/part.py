# SPDX-License-Identifier: Apache-2.0
"""What the parts of a campaign share: a part prints lines of JSON, and last a line for people."""
import argparse
import ctypes
import json
import sys

SKIPPED = 77
MIB = 1 << 20


def begin(doc):
    """The options of a part: its allocator, which is enabled, and whether it is to be quick."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--allocator", default="native", choices=["native", "paged"])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.allocator == "paged":
        import drystone.torch
        drystone.torch.enable("paged")
    return given


def put(**result):
    print(json.dumps(result), flush=True)


def say(text):
    """The line for people, which the summary shows."""
    put(says=text)


def skip(why):
    say(why)
    sys.exit(SKIPPED)


def library(name):
    """A library that the machine or PyTorch has loaded, or can load; None: there is none."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def used():
    """Bytes of the device that are in use, by whomever."""
    import torch
    free, total = torch.cuda.mem_get_info()
    return total - free
