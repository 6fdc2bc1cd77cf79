# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own counts of its memory as figures of a page: no walk over blocks, no call of CUDA."""
from __future__ import annotations

from typing import Any

from .._live import UNKNOWN, Detail, Figures


def device_figures(torch: Any, device: int) -> Figures | None:
    """Return an allocator's figures; None: the program has taken no memory of this device."""
    stats = torch.cuda.memory_stats_as_nested_dict(device)
    if not stats or stats["reserved_bytes"]["all"]["peak"] == 0:
        return None
    reserved, allocated = stats["reserved_bytes"]["all"], stats["allocated_bytes"]["all"]
    requested = stats.get("requested_bytes", {}).get("all", {})
    own = stats.get("drystone", {})  # of Drystone's allocator
    return Figures(
        reserved=reserved["current"], allocated=allocated["current"],
        active=stats["active_bytes"]["all"]["current"],
        requested=requested.get("current", UNKNOWN),
        reserved_peak=reserved["peak"], allocated_peak=allocated["peak"],
        limit=_limit(torch, device), retries=stats.get("num_alloc_retries", 0),
        ooms=stats.get("num_ooms", 0), driver_allocs=stats.get("num_device_alloc", 0),
        driver_frees=stats.get("num_device_free", 0),
        driver_calls=own.get("driver_calls", UNKNOWN), pages_moved=own.get("pages_moved", UNKNOWN),
        driver_time_ns=own["driver_time_us"] * 1000 if own else UNKNOWN)


def host_figures(torch: Any) -> Figures | None:
    """Return those of pinned memory; None: there was none, or this release does not count it."""
    count = getattr(torch.cuda.memory, "host_memory_stats_as_nested_dict", None)
    stats = count() if count else {}
    # Before 2.10 the names were those of device memory.
    names = ("allocated_bytes", "active_bytes")
    if names[1] not in stats:
        names = ("reserved_bytes", "allocated_bytes")
    reserved, active = (stats.get(name, {}) for name in names)
    if not reserved.get("peak"):
        return None
    return Figures(
        reserved=reserved["current"], allocated=active["current"], active=active["current"],
        requested=UNKNOWN, reserved_peak=reserved["peak"], allocated_peak=active["peak"],
        limit=UNKNOWN, driver_allocs=stats.get("num_host_alloc", 0),
        driver_frees=stats.get("num_host_free", 0), driver_calls=UNKNOWN, pages_moved=UNKNOWN,
        driver_time_ns=UNKNOWN)


def host_detail(figures: Figures) -> Detail:
    """Return the sums of pinned memory. PyTorch can give all idle blocks back to the system."""
    idle = max(0, figures.reserved - figures.active)
    return Detail(reserved=figures.reserved, releasable=idle)


def device_uuid(torch: Any, device: int) -> str:
    """Return the device's as NVML prints it; "": this release does not know it."""
    if not torch.version.cuda:
        return ""
    uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    return uuid if not uuid or uuid[:4] in ("GPU-", "MIG-") else f"GPU-{uuid}"


def _limit(torch: Any, device: int) -> int:
    """Return what the allocator may reserve; releases before 2.8 do not tell their fraction."""
    fraction = getattr(torch.cuda.memory, "get_per_process_memory_fraction", None)
    if fraction is None:
        return UNKNOWN
    total: int = torch.cuda.get_device_properties(device).total_memory
    try:
        return int(total * fraction(device))
    except RuntimeError:  # an allocator without one
        return total
