# SPDX-License-Identifier: Apache-2.0
"""A program that is proven imports this, and goes on once `drystone run` has looked at it as it is.

The command waits, looks, and waits again. Each of its waits is counted by the kernel, so two more
of them hold a look between them.
"""
import os
import time


def read_status(process):
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines)


command = os.getppid()
while read_status(command)["Name"] != "drystone":
    command = int(read_status(command)["PPid"])


def count_waits():
    return int(read_status(command)["voluntary_ctxt_switches"])


begin = count_waits()
while count_waits() < begin + 2:
    time.sleep(0.01)
