# SPDX-License-Identifier: Apache-2.0
"""A process ends with tensors alive, while memory is pinned ahead, and by an exception."""
import os
import subprocess
import sys

BODY = """
import sys
sys.path.insert(0, {here!r})
from pinned_here import *
enable_pinned(block_size_mb=256, block_count=4, device=0)
kept = [pinned(MIB) for _ in range(10)]
device = kept[0].to("cuda", non_blocking=True)
pinned(3 * MIB).to("cuda", non_blocking=True)
{last}
"""
if __name__ == "__main__":
    from pinned_here import torch
    # Without the dry run's hook, which ends processes by _exit(): here the interpreter is to end.
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(
        path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if not os.path.exists(os.path.join(path, "_drystone_dry_run.py"))))
    here = os.path.dirname(os.path.abspath(__file__))
    for last, status in (("", 0), ("raise KeyError('in the middle')", 1), ("sys.exit(5)", 5)):
        done = subprocess.run([sys.executable, "-c", BODY.format(here=here, last=last)], env=env,
                              capture_output=True, text=True, check=False)
        assert done.returncode == status, (last, done.returncode, done.stderr)
        assert ("KeyError" in done.stderr) == (status == 1), done.stderr
    torch.ones(1, device="cuda")
