# SPDX-License-Identifier: Apache-2.0
"""Inside a dry run: a program under the stand-in alone, without the dry run's own hook.

    stress_start.py DONE PROGRAM [ARGUMENTS]     DONE gets the exit status as text

The hook keeps a history and leaves before the interpreter's own end, which a test of an allocator
wants to see. What DRY_PRELOAD names is loaded next to the stand-in, before all other libraries.
"""
import os
import pathlib
import subprocess
import sys

env = {key: value for key, value in os.environ.items() if key != "DRYSTONE_DRY_RUN"}
if env.get("DRY_PRELOAD"):
    standin, rest = env["LD_PRELOAD"].split(":", 1)
    env["LD_PRELOAD"] = f"{standin}:{env['DRY_PRELOAD']}:{rest}"
program = pathlib.Path(__file__).parent / sys.argv[2]
ended = subprocess.run([sys.executable, str(program), *sys.argv[3:]], env=env, stdout=sys.stderr,
                       check=False)
pathlib.Path(sys.argv[1]).write_text(str(ended.returncode))
