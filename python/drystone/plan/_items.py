# SPDX-License-Identifier: Apache-2.0
"""A plan's items as objects: what is saved, by which option, and which ranges run again."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from ._errors import PlanError
from ._policy import policy_contexts
from ._types import Json, Policy


class Save:
    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last


class Option:
    """One stage by one of its options: its policy, or None; the bytes that it offloads."""

    phase = "backward"  # as the judge has it: the second run is part of the stage's backward

    def __init__(self, stage: int, policy: Policy | None, offload: int) -> None:
        self.first = self.last = stage
        self.inner: list[Item] = [Save(stage, stage)]
        self.policy, self.offload = policy, offload
        self.make_contexts = None if policy is None else policy_contexts(policy)


class Range:
    phase = "recompute"

    def __init__(self, first: int, last: int, inner: list[Item]) -> None:
        self.first, self.last = first, last
        self.inner = inner


Item = Union[Save, Option, Range]


def _items_of(plan: object) -> list[Json]:
    items = plan.get("items") if isinstance(plan, dict) else None
    if not isinstance(items, list) or not items:
        raise PlanError("a plan has a list of items")
    return items


def _bounds(item: Json, name: str, expected: int) -> tuple[int, int]:
    pair = item[name]
    if (not isinstance(pair, (list, tuple)) or len(pair) != 2 or
            not all(isinstance(number, int) for number in pair) or
            pair[0] != expected or pair[1] < pair[0]):
        raise PlanError(f"{name} {pair}: expected a range that begins with stage {expected}")
    return pair[0], pair[1]


def _find_option(chain: Json | None, number: int, name: object) -> tuple[Json, Json]:
    """(stage, option) of the chain, each empty where it has none of this name."""
    stages = [each for each in chain["stages"] for _ in range(each.get("repeat", 1))] \
        if chain else []
    stage = stages[number] if number < len(stages) else {}
    found = [option for option in stage.get("options", ()) if option["id"] == name]
    return stage, found[0] if found else {}


def _check_offload(stage: Json, option: Json, number: int) -> None:
    """Without a policy nobody knows what else is not kept."""
    flags = ("saved_has_input", "saved_has_output")
    if (all(option.get(key, stage.get(key)) == stage.get(key) for key in flags) and
            option["saved"] < stage.get("saved", 0)):
        raise PlanError(f"option {option['id']!r} of stage {number} saves less than the stage, "
                        "and has no policy that says what")


def _make_option(chain: Json | None, number: int, item: Json) -> Option:
    """The chain's option has the policy, or else the item: of options made of operations."""
    name, own = item.get("id"), item.get("policy")
    if chain is None and own is None:
        raise PlanError(f"stage {number} is kept by option {name!r}: give the chain too")
    stage, option = _find_option(chain, number, name)
    policy = option.get("policy", own)
    offload = option.get("offload", 0)
    if policy is None and not offload:
        raise PlanError(f"stage {number} has no option {name!r} with a policy, or that "
                        "offloads")
    if policy is None:
        _check_offload(stage, option, number)
    return Option(number, policy, offload)


def _parse_range(item: Json, begin: int, end: int, chain: Json | None) -> Range:
    if not item.get("inner"):
        return Range(begin, end, [Save(begin, end)])
    inner, after = _parse(item["inner"], begin, chain)
    if after != end + 1:
        raise PlanError(f"the inner items of ckpt {item['ckpt']} end before stage {after}")
    return Range(begin, end, inner)


def _parse(items: Iterable[Json], after: int, chain: Json | None) -> tuple[list[Item], int]:
    """(items as objects, the stage after the last)."""
    made: list[Item] = []
    for item in items:
        kinds = [kind for kind in ("save", "ckpt", "opt") if kind in item]
        if len(kinds) != 1:
            raise PlanError(f"an item is one of save, ckpt and opt, not {sorted(item)}")
        begin, end = _bounds(item, kinds[0], after)
        if kinds[0] == "save":
            made.append(Save(begin, end))
        elif kinds[0] == "ckpt":
            made.append(_parse_range(item, begin, end, chain))
        else:
            made += [_make_option(chain, stage, item)
                     for stage in range(begin, end + 1)]
        after = end + 1
    return made, after


def _without_last(items: list[Item]) -> list[Item]:
    """The plan when the caller runs the last stage, a loss."""
    last = items[-1]
    if not isinstance(last, Save):
        raise PlanError("the plan runs its last stage twice: it must be among the stages")
    return items[:-1] + ([Save(last.first, last.last - 1)] if last.first < last.last else [])


def read_items(plan: object, chain: Json | None, stage_count: int,
               has_loss: bool) -> tuple[list[Item], bool]:
    """(items, are they without the chain's last stage, which the caller runs?)"""
    if chain is not None and not (isinstance(chain, dict) and
                                  isinstance(chain.get("stages"), list)):
        raise PlanError("chain is what measure() returns, or a chain file read as JSON")
    items, count = _parse(_items_of(plan), 0, chain)
    is_cut = count == stage_count + 1 and not has_loss
    if is_cut:
        items, count = _without_last(items), count - 1
    if count != stage_count:
        raise PlanError(f"the plan has {count} stages, here are {stage_count}")
    return items, is_cut


def offloading(items: Iterable[Item]) -> set[int]:
    """Stages of which something goes to the host, in whatever run."""
    found: set[int] = set()
    waiting = list(items)
    while waiting:
        item = waiting.pop()
        if isinstance(item, Option) and item.offload:
            found.add(item.first)
        elif isinstance(item, Range):
            waiting += item.inner
    return found
