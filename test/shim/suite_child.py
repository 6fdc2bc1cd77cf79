# SPDX-License-Identifier: Apache-2.0
"""Runs tests of one of PyTorch's files, in order; a line of JSON for each.

    suite_child.py ORDER     JSON, see suite_loop.py; with `list`, names go there and none runs

Blocks read as zeros when they are handed out and small operations are done on the CPU, as
`drystone dry-run --values` has it.
"""
import ctypes
import gc
import importlib.util
import json
import os
import sys
import traceback
import unittest


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def name_of(test):
    return ".".join(test.id().split(".")[-2:])


class Result(unittest.TestResult):
    """Writes a line as a test begins, and one as it ends."""

    def __init__(self, path):
        super().__init__()
        self.out = open(path, "a", encoding="utf-8")
        self.said = None

    def write(self, test, outcome, text=""):
        self.out.write(json.dumps([name_of(test), outcome, text]) + "\n")
        self.out.flush()

    def startTest(self, test):
        self.said = None
        self.write(test, "begun")

    def stopTest(self, test):
        self.write(test, *(self.said or ("ok", "")))
        gc.collect()

    def addSkip(self, test, reason):
        self.said = "skipped", reason

    def addExpectedFailure(self, test, err):
        self.said = "ok", ""

    def _fail(self, test, err):
        self.said = "failed", "".join(traceback.format_exception(*err))[-2500:]

    def addError(self, test, err):
        self._fail(test, err)

    def addFailure(self, test, err):
        self._fail(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._fail(test, err)


def use_values(torch):
    def begin():
        watch = ctypes.CDLL(None).drystone_standin_watch_blocks
        watch.argtypes, watch.restype = [], ctypes.c_char_p
        why = watch()
        if why:
            sys.exit(f"blocks keep what they held: {why.decode()}")
        import _drystone_values
        _drystone_values.switch_on(lambda text: None)
    torch.cuda._lazy_call(begin)


def main():
    order = json.loads(sys.argv[1])
    sys.argv = [order["file"]]  # PyTorch's test support reads the command line
    folder, file = os.path.split(order["file"])
    sys.path.insert(0, folder)
    import torch
    use_values(torch)
    name = file[:-len(".py")]
    spec = importlib.util.spec_from_file_location(name, order["file"])
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = {name_of(test): test
             for test in flatten(unittest.defaultTestLoader.loadTestsFromModule(module))}
    if "list" in order:
        classes = order["classes"]
        names = [test for test in tests if order["only"] in test and
                 (not classes or test.split(".")[0] in classes)]
        with open(order["list"], "w", encoding="utf-8") as out:
            json.dump(names, out)
        return
    unittest.TestSuite(tests[test] for test in order["ids"] if test in tests).run(
        Result(order["lines"]))
    sys.stdout.flush()


main()
