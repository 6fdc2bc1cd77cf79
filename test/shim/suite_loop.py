# SPDX-License-Identifier: Apache-2.0
"""Inside a dry run: has tests run in few processes; what fails beside others may run alone, too.

    suite_loop.py ORDER

ORDER is a file of JSON: `file` with the tests, `classes` and `ids` to choose from it, `only` a
text in their names, `out` for the results, `again` whether tests that fail run once more alone.
A process that crashes, or makes no progress for PATIENCE seconds, costs the test that it was at.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PATIENCE = 150  # seconds a test, on a busy machine


def start(order, log):
    """A process of suite_child.py, under the stand-in but without the dry run's own hook."""
    env = {key: value for key, value in os.environ.items() if key != "DRYSTONE_DRY_RUN"}
    child = pathlib.Path(__file__).with_name("suite_child.py")
    return subprocess.Popen([sys.executable, str(child), json.dumps(order)], env=env, stdout=log,
                            stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)


def wait(process, path):
    """Until the process ends. False: it made no progress, and was ended."""
    size = -1
    while True:
        try:
            process.wait(PATIENCE)
            return True
        except subprocess.TimeoutExpired:
            if path.stat().st_size == size:
                process.kill()
                process.wait()
                return False
            size = path.stat().st_size


def read(path):
    """{test: [outcome, text]}, and the test that was begun and has not ended, or None."""
    results, begun = {}, None
    for line in path.read_text().splitlines():
        test, outcome, text = json.loads(line)
        if outcome == "begun":
            begun = test
        else:
            results[test], begun = [outcome, text], None
    return results, begun


def run_some(order, ids, folder):
    """Results of the first of `ids`, at least of one."""
    path, log = folder / "lines", folder / "log"
    path.write_text("")
    with open(log, "w", encoding="utf-8") as file:
        process = start({**order, "ids": ids, "lines": str(path)}, file)
        is_ended = wait(process, path)
    results, begun = read(path)
    tail = log.read_text(errors="replace")[-1500:]
    if begun:
        results[begun] = [f"status {process.returncode}" if is_ended else "no end", tail]
    elif not results:
        raise RuntimeError(f"no test began:\n{tail}")
    return results


def main():
    order = json.loads(pathlib.Path(sys.argv[1]).read_text())
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        ids = order["ids"]
        if ids is None:
            with open(folder / "log", "w", encoding="utf-8") as log:
                start({**order, "list": str(folder / "ids")}, log).wait()
            if not (folder / "ids").is_file():
                sys.exit(f"the tests cannot be listed:\n{(folder / 'log').read_text()[-3000:]}")
            ids = json.loads((folder / "ids").read_text())
        while ids:
            results.update(run_some(order, ids, folder))
            ids = [test for test in ids if test not in results]
        if order["again"]:
            for test in [test for test in results if results[test][0] not in ("ok", "skipped")]:
                alone = run_some(order, [test], folder)
                if alone[test][0] == "ok":  # else the first failure stays, which has the reason
                    results.update(alone)
    pathlib.Path(order["out"]).write_text(json.dumps(results, indent=1))


main()
