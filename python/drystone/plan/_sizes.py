# SPDX-License-Identifier: Apache-2.0
"""What the stages save, in the chain's terms, where a storage may go through several of them.

A stage that hands on what it was given, a mask beside the hidden state, returns a storage that
another one made. It is there once. If it is the chain's input, it is there whatever the plan, and
no stage has it among its output. Else the stage that made it is saved in every plan, so that it
is there from then on, unless that costs more than to charge each stage for it, which is too much
and never too little.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._live import LiveBytes, Seen, key_of, tensors_of
from ._stage import call, cut
from ._types import Json, Tree

if TYPE_CHECKING:
    from ._measure import Runner

Name = tuple[int, int]  # of a storage: the stage that made it, and a number


def _storages(tree: Tree) -> dict[int, int]:
    return {key_of(t): t.untyped_storage().nbytes() for t in tensors_of(tree)}


class Names:
    """The same name for a storage in all stages: who made it, and a number."""

    def __init__(self, x: Tree) -> None:
        self.stage = -1
        self.names = {key: (-1, number) for number, key in enumerate(_storages(x))}

    def follow(self, y: Tree) -> None:
        """The next stage has run."""
        self.stage += 1
        self.names = {key: self.names.get(key, (self.stage, number))
                      for number, key in enumerate(_storages(y))}


class Facts:
    """A stage's run: distinct storages of its ends, by name, and what it saves."""

    def __init__(self, runner: Runner, x: Tree, names: Names) -> None:
        x = cut(x)
        seen, live = Seen(), LiveBytes()
        with live:
            with seen.watching():
                y = call(runner, x)
            self._take(x, y, seen.storages, live, names.names)

    def _take(self, x: Tree, y: Tree, saved: dict[int, int], live: LiveBytes,
              names: dict[int, Name]) -> None:
        """Of what is saved only what it made itself counts, and its ends: weights and what else
        was there before do not."""
        inputs, outputs = _storages(x), _storages(y)
        fresh = {key: size for key, size in outputs.items() if key not in inputs}
        self.inputs = {names[key]: size for key, size in inputs.items()}
        self.saved_inputs = {names[key] for key in inputs if key in saved}
        self.passed = {names[key]: size for key, size in inputs.items() if key in outputs}
        self.fresh = sum(fresh.values())
        self.is_fresh_saved = all(key in saved for key in fresh)
        self.own = [size for key, size in saved.items()
                    if key in live.born and key not in outputs and key not in inputs]
        made = sum(size for key, size in fresh.items() if key in live.born)
        # Kept beside autograd: by a function that puts tensors into its context, or a cache.
        self.beside = max(0, live.live - sum(self.own) - made)

    @property
    def price(self) -> int:
        """What more is held, at the most, if the stage is saved in every plan."""
        return sum(self.own) + self.beside + self.fresh + sum(self.inputs.values())


def _uncharged(facts: list[Facts]) -> tuple[set[Name], set[int]]:
    """(names that no output is charged with, stages that are saved for it)."""
    prices: dict[int, dict[Name, int]] = {}
    free: set[Name] = set()
    fixed: set[int] = set()
    for each in facts:
        for name, size in each.passed.items():
            prices.setdefault(name[0], {}).setdefault(name, 0)
            prices[name[0]][name] += size
    for maker, by_name in prices.items():
        if sum(by_name.values()) > (facts[maker].price if maker >= 0 else 0):
            free.update(by_name)
            fixed.update([maker] if maker >= 0 else [])
    return free, fixed


def _settled(facts: Facts, free: set[Name], index: int) -> tuple[Json, int]:
    """One stage; and what makes an option's "saved" of the bytes that it holds."""
    # What the stage before has among its output: it made it, or is charged for it.
    inputs = {name: size for name, size in facts.inputs.items()
              if index == 0 or name[0] == index - 1 or name not in free}
    passed = {name: size for name, size in facts.passed.items() if name not in free}
    has_input = bool(inputs) and inputs.keys() <= facts.saved_inputs
    has_output = bool(facts.fresh or passed) and (
        facts.is_fresh_saved and passed.keys() <= facts.saved_inputs)
    before, out = sum(inputs.values()), facts.fresh + sum(passed.values())
    ends = {"saved_has_input": has_input, "saved_has_output": has_output}
    return ({"out": out, "saved": sum(facts.own) + facts.beside + has_input * before +
                                  has_output * out, **ends},
            has_input * before - (not has_output) * out + sum(passed.values()))


def find_sizes(runner: Runner, x: Tree) -> Json:
    """The sizes of a stage alone."""
    stage: Json = {}
    settle([stage], [Facts(runner, x, Names(x))])
    return stage


def settle(stages: list[Json], facts: list[Facts]) -> None:
    """Fills in what the stages save; options have what is held of what was made, until now."""
    free, fixed = _uncharged(facts)
    for index, (stage, each) in enumerate(zip(stages, facts)):
        sizes, more = _settled(each, free, index)
        stage.update(sizes)
        for option in stage.get("options", ()):
            option["saved"] += more
        if index in fixed:
            stage["recomputable"] = False
