#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dry run leaves loops of all kinds where their turns end: jumps.py HOOK_FOLDER

Each function has its own kind of loop, and asks to leave it by step(). No PyTorch is needed.
"""
import ast
import contextlib
import os
import pathlib
import sys
import tempfile
import time
import types

sys.path.insert(0, sys.argv[1])
import _drystone_dry_run  # noqa: E402
import _drystone_rare  # noqa: E402
import _drystone_turns  # noqa: E402

log = []


def find():
    frames = [frame for frame in _drystone_turns.find_frames()
              if frame.f_code.co_filename == __file__ and frame.f_code.co_name not in
              ("find", "step", "ask_rare", "<module>")]
    return frames, _drystone_turns.find_loops(frames)


def step(count=1):
    """Ask to leave the innermost loops. Returns whether each has a way out, and what follows."""
    frames, loops = find()
    ways = [_drystone_turns._jumper.wait(*loop) for loop in loops[:count]]
    return ways, _drystone_turns.find_rest(frames, loops)


def ask_rare(turns, count=9):
    return _drystone_rare.find(find()[1][:count], turns, lambda code, line: code.co_name)


def with_in_epochs():
    log.append("begin")
    for epoch in range(2):
        with contextlib.nullcontext():
            for turn in range(1000):
                log.append((epoch, turn))
                if turn == 1:
                    step()
    with contextlib.nullcontext() as nothing:
        log.append(nothing)


def two_at_once():
    log.append("begin")
    for _ in range(100):
        for turn in range(1000):
            if turn == 1:
                step()
    for turn in range(2):
        log.append(turn)


def without_condition():
    turns = 0
    while True:
        turns += 1
        if turns == 3:
            step()
        if turns > 100:
            break
    log.append(
        turns)


def outer_too():
    for epoch in range(100):
        for turn in range(1000):
            if turn == 3 and epoch == 1:
                step(2)
            if turn == 5:
                break
        log.append(epoch)
    pair = ("many",
            "lines")
    log.append(pair)


def condition():
    turns = 0
    while turns < 1000:
        turns += 1
        if turns == 5:
            step()
    with contextlib.suppress(KeyError):
        raise KeyError
    log.append(turns)


def with_else():
    for turn in range(1000):
        if turn == 3:
            step()
    else:
        log.append("else")
    turns = 0
    while turns < 1000:
        turns += 1
        for inner in range(9):
            if turns == 5 and inner == 2:
                step()
    else:
        log.append(turns)
    log.append("after")


def in_try():
    try:
        for turn in range(1000):
            if turn == 3:
                step()
        log.append(turn)
        raise KeyError
    except KeyError:
        log.append("caught")


def in_finally():
    for epoch in range(2):
        try:
            for turn in range(1000):
                if turn == 3:
                    step()
        finally:
            log.append(turn)


def called_by_library():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "caller-1.0.dist-info"))
        pathlib.Path(folder, "caller.py").write_text(
            "def call(one):\n    while True:\n        one()\n        return 1\n")
        sys.path.append(folder)
        import caller
        found = []

        def work():
            for turn in range(5):
                if turn == 3:
                    frames = [frame for frame in _drystone_turns.find_frames() if
                              frame.f_code.co_filename in (caller.__file__, __file__)]
                    found.append(_drystone_turns.find_rest(
                        frames[:2], _drystone_turns.find_loops(frames[:2])))
        caller.call(work)
        sys.path.remove(folder)
        _drystone_turns.is_installed.cache_clear()
        caller.call(work)
        log.append([str(one).rpartition("/")[2] for one in found])


def no_way():
    for turn in range(5):
        if turn == 3:
            log.append(step())


def rare():
    each, last = 500, 1000
    for turn in range(last):
        if turn % each == 0 or turn == 0:
            log.append(turn)  # came in the first turn
        if turn == 20:
            log.append(ask_rare(21))
            break


def rare_each():
    each = 500
    for turn in range(1000):
        if (turn + 1) % each == 0:
            log.append(turn)
        if turn == 20:
            log.append(ask_rare(21))
            break


def rare_last():
    rows = range(1000)
    for turn in rows:
        if turn == len(rows) - 1:
            log.append(turn)
        if turn >= 20:
            log.append(ask_rare(21))
            break


def rare_but_first():
    for turn in range(1000):
        if turn > 0 and turn % 500 == 0:
            log.append(turn)
        if turn == 20:
            log.append(ask_rare(21))
            break


def rare_by_function():
    def is_due(number, each):
        return number % each == 0
    self = types.SimpleNamespace(step=0)
    while self.step < 1000:
        if self.step != 0 and is_due(self.step, 500):
            log.append(self.step)
        if self.step == 20:
            log.append(ask_rare(21))
            break
        self.step += 1


def rare_without_calls():
    def ask():
        log.append("called")
        return 500
    self = types.SimpleNamespace(ask=ask)
    for turn in range(1000):
        if turn == 20:
            log.clear()
            self.seen = 0
            log.append(ask_rare(21))
            log.append(self.seen)
            break
        if turn and setattr(self, "seen", turn) == turn:
            log.append(turn)
        if turn and turn % self.ask() == 499:
            log.append(turn)


def rare_inside():
    for _ in range(2):
        for turn in range(200):
            if turn % 150 == 0:
                log.append(turn)  # came in the first turn of each epoch
        for turn in range(1000):
            if turn % 100 == 0:
                log.append(turn)
            if turn == 20:
                log.append(ask_rare(21, 2))
                break


def rare_epoch_inside():
    for epoch in range(9):
        for turn in range(1000):
            if epoch == 5:
                log.append(turn)
            if turn == 20:
                log.append(ask_rare(21, 2))
                break
        if epoch == 1:
            break


def rare_log():
    total, one = 0, types.SimpleNamespace(is_cuda=True, numel=lambda: 1)
    many = types.SimpleNamespace(is_cuda=True, numel=lambda: 9)
    assert many
    for turn in range(1000):
        total += turn
        if (turn + 1) % 500 == 0:
            mean = total / 500
            print(f"{turn:5d} {mean:.3f} {many.size(0)} {len(many)}", one)
            total = 0
        if turn == 20:
            log.append(ask_rare(21))
            one.numel = lambda: 2  # a tensor of many elements may need memory
            log.append(ask_rare(21))
            break


def rare_in_words():
    """Tests that are no statements of their own, or whose other side comes late."""
    for turn in range(100):
        if turn == 20:
            log.append(ask_rare(21))
            break
        log.append(turn) if turn == 50 else None


def rare_and():
    for turn in range(1000):
        turn % 500 == 499 and log.append(turn)
        if turn == 20:
            log.append(ask_rare(21))
            break


def rare_otherwise():
    for turn in range(1000):
        rows = 8 if turn < 500 else [turn]
        if turn == 20:
            log.append(ask_rare(21))
            break
        if turn != 700:
            assert rows
        else:
            log.append(turn)


def rare_match():
    text = "for turn in rows:\n match turn:\n  case 1 | 2: pass\n  case {}: pass\n  case 500: save()"
    tests = _drystone_rare.find_tests(ast.parse(text).body[0]) if hasattr(ast, "Match") else []
    log.append([ast.unparse(one.test).rpartition(" ")[2] for one in tests] or ["1", "2", "500"])


def rare_never():
    """What comes in each turn, or in none, waits for nothing."""
    width = 8
    for turn in range(1000):
        log.append(turn) if width == 9 else None
        rows = [turn] if turn >= 0 else log
        if turn < 10:
            assert rows
        elif turn == 20:
            log.append(ask_rare(21))
            break


def trainer():
    class Trainer:
        args = types.SimpleNamespace(eval_strategy="steps", eval_steps=500)

        def run(self):
            for turn in range(1000):
                if turn == 20:
                    log.append(ask_rare(21))
                    log.append(ask_rare(501))
                    break
    Trainer().run()


def varied():
    """Lengths by chance are ended, slow ones after few steps; steps that leave 1 MiB each are not."""
    hook = _drystone_dry_run
    sys.modules["torch"] = types.SimpleNamespace()
    hook._settings.update(patience=8, world_size=1)
    for count, by_chance, each, rise, waited in (
            (40, 5, 0, 3, 5), (40, 0, 1 << 20, 3, 5), (20, 5, 0, 3, 5), (40, 5, 0, 30, 5),
            (6, 5, 0, 3, 17), (4, 5, 0, 1, 17)):
        hook._state["loop_begin"] = time.monotonic() - waited
        hook._state["rise"] = 1, rise
        hook._state["steps"] = [{"total": [0, 0, i % 7 * by_chance + i * each, 0]}
                                for i in range(count)]
        log.append(hook.is_varied(count))
    del sys.modules["torch"]


def names_of_exec():
    """Names of a program that exec() gives its own are not a copy."""
    names = {}
    exec("for turn in range(3):\n    ask()",
         {"ask": lambda: _drystone_rare.read_names(sys._getframe(1))}, names)
    log.append(names.get("turn"))


class Loader:
    def __next__(self):
        log.append(_drystone_turns.expects_end(sys._getframe(1)))
        return 0

    def __iter__(self):
        return self


def asked():
    """Who asks a generator decides, if no other loop is in it."""
    def hand_out():
        for batch in Loader():
            yield batch

    def hand_out_for_ever():
        while True:
            for batch in Loader():
                yield batch

    next(hand_out())
    next(hand_out_for_ever())
    for _ in hand_out():
        break
    try:
        next(hand_out())
    except StopIteration:
        pass


EXPECTED = {
    names_of_exec: [2],
    varied: [True, False, False, False, True, False],
    asked: [False, True, True, True],
    trainer: ["the evaluation of step 500 waits for a later turn", None],
    with_in_epochs: ["begin", (0, 0), (0, 1), (1, 0), (1, 1), None],
    two_at_once: ["begin", 0, 1],
    without_condition: [3],
    outer_too: [0, 1, ("many", "lines")],
    condition: [5],
    with_else: ["else", 5, "after"],
    in_try: [3, "caught"],
    in_finally: [3, 3],
    called_by_library: [["None", "caller.py:3"]],
    no_way: [([False], None)],
    rare: [0, None],
    rare_each: ["rare_each waits for a later turn"],
    rare_in_words: ["rare_in_words waits for a later turn"],
    rare_and: ["rare_and waits for a later turn"],
    rare_otherwise: ["rare_otherwise waits for a later turn"],
    rare_match: [["1", "2", "500"]],
    rare_never: [None],
    rare_but_first: ["rare_but_first waits for a later turn"],
    rare_by_function: ["rare_by_function waits for a later turn"],
    rare_without_calls: [None, 0],
    rare_inside: 2 * [0, 150, 0, None],
    rare_epoch_inside: 2 * ["rare_epoch_inside waits for a later turn"],
    rare_log: [None, "rare_log waits for a later turn"],
    rare_last: ["rare_last waits for a later turn"],
}
wrong = 0
for function, expected in EXPECTED.items():
    log.clear()
    function()
    sys.settrace(None)
    if log != expected or _drystone_turns._jumper.waiting:
        print(f"{function.__name__}: {log}, expected {expected}")
        wrong += 1
sys.exit(wrong > 0)
