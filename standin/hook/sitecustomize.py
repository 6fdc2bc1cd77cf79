# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start in every process of a dry run: the launcher puts its folder
first on PYTHONPATH. It arms the hook, then gives way to the sitecustomize it hides, if any.
"""
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

if os.environ.get("DRYSTONE_DRY_RUN"):
    _spec = importlib.util.spec_from_file_location(
        "_drystone_dry_run", os.path.join(_HERE, "_drystone_dry_run.py"))
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["_drystone_dry_run"] = _module
    _spec.loader.exec_module(_module)
    _module.arm()

_hidden = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != _HERE])
if _hidden and _hidden.loader:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))
