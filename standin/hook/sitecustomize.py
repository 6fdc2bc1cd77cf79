# SPDX-License-Identifier: Apache-2.0
"""Python imports this at startup in every process of a dry run: the launcher puts its folder
first on PYTHONPATH. It installs the hook, then runs the sitecustomize that it hides, if any.
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

# Search only after this folder, so that two such files cannot run each other endlessly.
_places = [os.path.abspath(place or ".") for place in sys.path]
_behind = sys.path[_places.index(_HERE) + 1:] if _HERE in _places else []
_hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", _behind)
if _hidden and _hidden.loader:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))
