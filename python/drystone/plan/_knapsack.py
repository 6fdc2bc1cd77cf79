# SPDX-License-Identifier: Apache-2.0
"""The library's knapsack (drystone/knapsack.h), and PyTorch's compiler as one who asks it."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from .._library import load_library
from ._errors import PlanError

_SUM_MAX = 1 << 62


class _Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("budget_bytes", ctypes.c_uint64), ("effort", ctypes.c_uint64)]


# Of dry_keep_result nothing is read: the choice itself is the answer. Room for it, with more.
_Result = ctypes.c_uint64 * 64


def _array(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


def knapsack(sizes: Sequence[int], times: Sequence[int], budget: int) -> list[int]:
    """Indices of what to keep: within the budget, so that the least time is spent again.

    Whole numbers, in any units; the same input gives the same answer everywhere.
    """
    if len(sizes) != len(times):
        raise PlanError(f"{len(sizes)} sizes and {len(times)} times")
    library = load_library()
    if library is None or not hasattr(library, "dry_keep_plain"):
        raise PlanError("there is no libdrystone with a knapsack: set DRYSTONE_LIBRARY")
    options, result = _Options(), _Result()
    kept = (ctypes.c_bool * len(sizes))()
    library.dry_keep_options_init_sized(ctypes.byref(options),
                                        ctypes.c_size_t(ctypes.sizeof(options)))
    options.budget_bytes = budget
    solve = library.dry_keep_plain
    solve.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                      ctypes.c_void_p, ctypes.c_void_p]
    status = solve(_array(sizes), _array(times), len(sizes), ctypes.byref(options), kept,
                   ctypes.byref(result))
    if status != 0:
        raise PlanError("the knapsack refuses these numbers: negative, or too large", status)
    return [index for index, is_kept in enumerate(kept) if is_kept]


def _whole(values: Sequence[float], limit: int) -> tuple[list[int], float]:
    """As whole numbers whose sum stays below the limit, as finely as doubles are."""
    total = sum(values)
    scale = limit / total if total > 0 else 1.0
    return [round(value * min(scale, 2.0 ** 40)) for value in values], min(scale, 2.0 ** 40)


def solve_memory_budget(memory: Sequence[float], times: Sequence[float],
                        max_memory: float) -> tuple[list[int], list[int]]:
    """What PyTorch's solvers do: (indices that are saved, indices that are recomputed)."""
    sizes, scale = _whole(memory, _SUM_MAX)
    budget = int(max(max_memory, 0) * scale)
    kept = knapsack(sizes, _whole(times, _SUM_MAX)[0], budget)
    rest = sorted(set(range(len(memory))) - set(kept))
    return kept, rest


def solver() -> Callable[..., tuple[list[int], list[int]]]:
    """For torch._functorch.config.activation_memory_budget_solver.

    The least recomputation for the saved bytes that activation_memory_budget leaves: proved,
    where PyTorch's own rounds to 10,000 parts. It bounds what is saved and not the peak.
    """
    from torch._functorch.partitioners import estimate_runtime
    from torch._inductor.custom_graph_pass import CustomKnapsackSolver

    class Solver(CustomKnapsackSolver):
        def __call__(self, memory: list[float], joint_graph: object, max_memory: float,
                     node_info: object,
                     all_recomputable_banned_nodes: list[Any]) -> tuple[list[int], list[int]]:
            times = [estimate_runtime(node) for node in all_recomputable_banned_nodes]
            return solve_memory_budget(memory, times, max_memory)

        def uuid(self) -> str:
            return "drystone.knapsack/1"

    return Solver()
