# SPDX-License-Identifier: Apache-2.0
"""Settings of PyTorch's allocator, and those that have no effect with placement paged."""
import os
import re
import warnings

# Options of placement paged, see drystone-pool(5).
OPTIONS = ("budget", "remap", "small_kb", "segment_mb", "leave_mb", "reuse_ordered", "reuse_passed",
           "reuse_waiting", "plan", "per_process_memory_fraction")
# What PyTorch goes by whoever allocates, and the choice that enable() makes anew.
_KEPT = ("pinned_", "backend")


def conf_of_torch() -> tuple[str, str]:
    """Return the variable that PyTorch's settings are in, and its value; two "": there are none."""
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if os.environ.get(name):
            return name, os.environ[name]
    return "", ""


def warn_of_ignored(conf: str, replaces_torch: bool) -> None:
    """Warn of each of PyTorch's settings that placement paged gives no effect.

    conf            options of the placement
    replaces_torch  ours is PyTorch's allocator, so that the variable's settings count no more
    """
    ignored = [(setting, "conf") for setting in _split(conf)
               if setting.split(":")[0].strip() not in OPTIONS]
    if replaces_torch:
        variable, value = conf_of_torch()
        ignored += [(setting, f"${variable}") for setting in _split(value)
                    if not setting.startswith(_KEPT)]
    for setting, place in ignored:
        warnings.warn(f"drystone: {setting} of {place} has no effect with placement paged, whose "
                      "options stand in drystone-pool(5)", stacklevel=3)


def _split(conf: str) -> list[str]:
    """Return the settings; commas in brackets divide none."""
    parts = re.findall(r"(?:\[[^]]*\]?|[^,[])+", conf)
    return [part.strip() for part in parts if part.strip()]
