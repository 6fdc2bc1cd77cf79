# SPDX-License-Identifier: Apache-2.0
"""python -m drystone.torch [options] PROGRAM [ARGUMENTS]: a program with Drystone's allocator."""
from __future__ import annotations

import argparse
import os
import runpy
import sys

from .._errors import Error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m drystone.torch",
        description="Runs a Python program with Drystone's allocator in PyTorch.",
        epilog="example: python -m drystone.torch --on-oom oom-{rank}.pickle train.py --batch 8")
    parser.add_argument("--placement", choices=["paged", "torch"], default="paged",
                        help="paged (default): ours; torch: PyTorch's decisions")
    parser.add_argument("--conf", help="options of the placement, see drystone-pool(5)")
    parser.add_argument("--on-oom", metavar="FILE",
                        help="when memory runs out: a snapshot to FILE, and the verdict")
    parser.add_argument("--publish", action="store_true",
                        help="show its memory in a page, as drystone.torch.publish() does")
    parser.add_argument("-m", dest="is_module", action="store_true",
                        help="PROGRAM is a module's name")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def main() -> None:
    given = _parser().parse_args()
    if not given.is_module and not os.path.isfile(given.program):
        sys.exit(f"drystone.torch: {given.program}: there is no such file")
    from . import enable, publish
    try:
        enable(given.placement, conf=given.conf, on_oom=given.on_oom)
        if given.publish:
            publish()
    except (Error, ImportError) as why:
        sys.exit(f"drystone.torch: {why}")
    sys.argv = [given.program, *given.arguments]
    if given.is_module:
        sys.path[0] = ""
        runpy.run_module(given.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(given.program))
        runpy.run_path(given.program, run_name="__main__")


if __name__ == "__main__":
    main()
