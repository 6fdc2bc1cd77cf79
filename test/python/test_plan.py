#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drystone.plan with a real PyTorch on a CPU: what is measured, run and promised."""
import os
import random
import subprocess
import sys
import unittest

import torch_here
import torch
from torch import nn
from torch.nn import functional as F

import models
from command_here import has_command
from evaluate import evaluate
from stepping import gradients
from drystone import plan as dp
from drystone.plan._live import LiveBytes, bytes_of
from drystone.plan._policy import _Ask, _Counter
from drystone.plan._verify import frame_bytes

SEED = int(os.environ.get("DRY_TEST_SEED", "20261121"))


def has_inner_option(items, is_inner=False):
    return any((is_inner and "opt" in item) or has_inner_option(item.get("inner", ()), True)
               for item in items)


def random_nested_options(rng, count, options):
    """A random plan with an option within a range."""
    while True:
        items = models.random_plan(rng, count, options)
        if has_inner_option(items):
            return items


class Measure(unittest.TestCase):
    def test_bytes_of_a_linear_are_its_input(self):
        stage = dp.measure([nn.Linear(8, 24)], torch.randn(5, 8))["stages"][0]
        self.assertEqual((stage["out"], stage["grad_out"]), (5 * 24 * 4, 5 * 24 * 4))
        self.assertEqual(stage["saved"], 5 * 8 * 4)
        self.assertTrue(stage["saved_has_input"])
        self.assertFalse(stage["saved_has_output"])
        self.assertEqual(stage["grads"], (8 * 24 + 24) * 4)

    def test_relu_saves_its_output_alone(self):
        x = torch.randn(5, 8, requires_grad=True)
        stage = dp.measure([nn.ReLU()], x)["stages"][0]
        self.assertEqual(stage["saved"], 5 * 8 * 4)
        self.assertFalse(stage["saved_has_input"])
        self.assertTrue(stage["saved_has_output"])

    def test_dtypes_are_true(self):
        stages = [nn.Linear(8, 8).to(torch.bfloat16), nn.Dropout(0.5)]
        measured = dp.measure(stages, torch.randn(5, 8, dtype=torch.bfloat16))["stages"]
        self.assertEqual(measured[0]["out"], 5 * 8 * 2)
        self.assertEqual(measured[1]["saved"], 5 * 8 * 2)  # noise, on a CPU as wide as x

    def test_views_and_weights_are_no_activations(self):
        class Views(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(8, 8))
                self.register_buffer("table", torch.randn(5, 8))

            def forward(self, x):
                return (x.t().t() * self.table) @ self.weight.t()

        stage = dp.measure([Views()], torch.randn(5, 8, requires_grad=True))["stages"][0]
        self.assertEqual(stage["saved"], 5 * 8 * 4)  # the product with the table
        self.assertFalse(stage["saved_has_input"])

    def test_what_a_function_hides_in_its_context_counts(self):
        class Hidden(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.hidden = x.exp()
                return ctx.hidden * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.hidden * 2

        x = torch.randn(100, requires_grad=True)
        self.assertEqual(dp.measure([Hidden.apply], x)["stages"][0]["saved"], 400)

    def test_who_draws_random_numbers_says_so(self):
        measured = dp.measure([nn.Linear(8, 8), nn.Dropout(0.5)], torch.randn(5, 8))["stages"]
        self.assertEqual([stage["rng"] for stage in measured], [False, True])

    def test_nothing_is_changed(self):
        stages, example = models.convolutional()
        stages[0].conv.weight.grad = torch.ones_like(stages[0].conv.weight)
        before = [{k: v.clone() for k, v in stage.state_dict().items()} for stage in stages]
        random_state = torch.get_rng_state()
        dp.measure(stages, example, loss=models.mean_of_squares, repeats=1)
        self.assertTrue(torch.equal(random_state, torch.get_rng_state()))
        for stage, state in zip(stages, before):
            for name, value in stage.state_dict().items():
                self.assertTrue(torch.equal(value, state[name]), name)
        self.assertTrue(torch.equal(stages[0].conv.weight.grad,
                                    torch.ones_like(stages[0].conv.weight)))
        self.assertIsNone(stages[1].conv.weight.grad)

    def test_fake_tensors_have_the_sizes_of_real_ones(self):
        for make in (models.transformer, models.convolutional):
            stages, example = make()
            real = dp.measure(stages, example, loss=models.mean_of_squares, repeats=1)
            fake = dp.measure(stages, example, loss=models.mean_of_squares, fake=True)
            self.assertEqual(real["persistent"], fake["persistent"])
            for a, b in zip(real["stages"], fake["stages"]):
                for key in ("name", "out", "saved", "saved_has_input", "saved_has_output",
                            "grad_out", "grads"):
                    self.assertEqual(a[key], b[key], (a["name"], key))
                self.assertGreater(b["fwd"] + b["bwd"], 0)

    def test_in_place_at_the_beginning_is_refused(self):
        with self.assertRaisesRegex(dp.PlanError, "1.ReLU changes its input in place"):
            dp.measure([nn.Linear(8, 8), nn.ReLU(inplace=True)], torch.randn(5, 8))

    def test_gradients_that_stay_are_persistent(self):
        stages, example = models.transformer()
        lazy = dp.measure(stages, example, fake=True)
        static = dp.measure(stages, example, fake=True, grads="static")
        weights = lazy["persistent"]["params"]
        self.assertEqual(frame_bytes(static) - frame_bytes(lazy), weights)
        self.assertEqual(sum(stage["grads"] for stage in lazy["stages"]), weights)

    def test_states_of_the_optimizer_count(self):
        stages, example = models.transformer()
        parameters = [p for stage in stages for p in stage.parameters()]
        optimizer = torch.optim.Adam(parameters)
        with self.assertRaisesRegex(dp.PlanError, "after its first step"):
            dp.measure(stages, example, fake=True, optimizer=optimizer)
        gradients(lambda x: models.mean_of_squares(nn.Sequential(*stages)(x)), parameters,
                  example)
        optimizer.step()
        chain = dp.measure(stages, example, fake=True, optimizer=optimizer)
        self.assertEqual(chain["persistent"]["optimizer"],
                         2 * chain["persistent"]["params"] + 4 * len(parameters))


class Apply(unittest.TestCase):
    def check_random_plans(self, make, count, selective=None):
        rng = random.Random(SEED)
        stages, example = make()
        chain = dp.measure(stages, example, fake=True, selective=selective)
        parameters = [p for stage in stages for p in stage.parameters()]
        norms = [m for stage in stages for m in stage.modules()
                 if isinstance(m, nn.BatchNorm2d)]
        fresh = [m.state_dict() for m in norms]
        fresh = [{k: v.clone() for k, v in state.items()} for state in fresh]

        def step(items):
            for norm, state in zip(norms, fresh):
                norm.load_state_dict(state)
            run = dp.apply(stages, {"items": items}, chain=chain, loss=models.mean_of_squares)
            loss, grads = gradients(run, parameters, example)
            return [loss, *grads, *(t.clone() for n in norms for t in n.buffers())]

        expected = step([{"save": [0, len(stages)]}])
        for _ in range(count):
            items = (random_nested_options(rng, len(stages) + 1, list(selective))
                     if selective else models.random_plan(rng, len(stages) + 1))
            for a, b in zip(expected, step(items)):
                self.assertTrue(torch.equal(a, b), (SEED, items))

    def test_gradients_are_bit_equal_whatever_the_plan(self):
        self.check_random_plans(models.transformer, 15)

    def test_batch_norms_count_a_batch_once(self):
        self.check_random_plans(models.convolutional, 10)

    def test_gradients_are_bit_equal_with_options_within_ranges(self):
        self.check_random_plans(models.transformer, 15, {
            "products": ["aten.addmm.default", "aten.mm.default", "aten.embedding.default"],
            "others": ["aten.gelu.default", "aten.native_layer_norm.default",
                       "aten.embedding.default", "aten.addmm.default"]})

    def test_batch_norms_count_a_batch_once_with_options_within_ranges(self):
        self.check_random_plans(models.convolutional, 15, {
            "products": ["aten.convolution.default", "aten.addmm.default"],
            "norms": ["aten.native_batch_norm.default", "aten.addmm.default"]})

    def test_second_backward_with_a_retained_graph(self):
        stages, example = models.convolutional()
        run = dp.apply(stages, {"items": [{"ckpt": [0, 3]}, {"save": [4, 6]}]},
                       loss=models.mean_of_squares)
        loss = run(example)
        loss.backward(retain_graph=True)
        once = stages[0].conv.weight.grad.clone()
        loss.backward()
        self.assertTrue(torch.allclose(stages[0].conv.weight.grad, 2 * once))

    def test_a_tuple_goes_on_as_arguments(self):
        split = lambda x: (x * 2, x + 1)
        join = lambda a, b: (a * b).sum()
        x = torch.randn(6, requires_grad=True)
        dp.apply([split, join], {"items": [{"ckpt": [0, 0]}, {"ckpt": [1, 1]}]})(x).backward()
        self.assertTrue(torch.allclose(x.grad, 4 * x.detach() + 2))

    def test_state_dict_does_not_know_the_plan(self):
        stages, _ = models.transformer()
        one = dp.apply(stages, {"items": [{"save": [0, 6]}]}).state_dict()
        two = dp.apply(stages, {"items": [{"ckpt": [0, 5]}, {"save": [6, 6]}]}).state_dict()
        self.assertEqual(list(one), list(two))
        self.assertEqual(list(one)[0], "0.weight")

    def test_the_caller_may_run_the_loss(self):
        stages, example = models.transformer()
        plan = {"items": [{"ckpt": [0, 4]}, {"save": [5, 7]}]}
        models.mean_of_squares(dp.apply(stages, plan)(example)).backward()
        self.assertIsNotNone(stages[0].weight.grad)

    def test_what_does_not_cover_the_stages_is_refused(self):
        stages = [nn.Linear(4, 4) for _ in range(4)]
        for items, text in (
                ([{"save": [0, 1]}, {"ckpt": [3, 3]}], "begins with stage 2"),
                ([{"save": [1, 3]}], "begins with stage 0"),
                ([{"save": [0, 1]}], "has 2 stages, here are 4"),
                ([{"ckpt": [0, 3], "inner": [{"save": [0, 1]}]}], "end before stage 2"),
                ([{"ckpt": [0, 4]}], "runs its last stage twice"),
                ([{"opt": [0, 3], "id": "sac"}], "give the chain too"),
                ([{"skip": [0, 3]}], "one of save, ckpt and opt"),
                ([{"save": [0, "3"]}], "expected a range"),
                ([], "list of items")):
            with self.assertRaisesRegex(dp.PlanError, text):
                dp.apply(stages, {"items": items})


class Verify(unittest.TestCase):
    def check_peaks(self, make, count, most, selective=None):
        """The peak that the rules promise from stages measured alone is that of the step.

        Not less, or a plan would not fit; and more where a stage frees much of what it saved
        before its gradients are there, for the rules charge all of them at once.
        """
        rng = random.Random(SEED + 1)
        stages, example = make()
        chain = dp.measure(stages, example, loss=models.mean_of_squares, repeats=1,
                           selective=selective)
        errors = []
        for _ in range(count):
            items = (random_nested_options(rng, len(stages) + 1, list(selective))
                     if selective else models.random_plan(rng, len(stages) + 1))
            run = dp.apply(stages, {"items": items}, chain=chain, loss=models.mean_of_squares,
                           early_stop=rng.random() < 0.5)
            verdict = dp.verify(chain, evaluate(chain, items, frame_bytes(chain)),
                                dp.watch(run, example))
            errors.append(100 * verdict.error)
            self.assertTrue(-0.5 < errors[-1] < most, (SEED, items, str(verdict)))
        print(f"{make.__name__}{', options' if selective else ''}: {count} plans, peak "
              f"{min(errors):+.2f} to {max(errors):+.2f} %")

    def test_watching_leaves_gradients_alone(self):
        stages, example = models.convolutional()
        example = example.detach().requires_grad_()
        example.grad = torch.ones_like(example)
        items = [{"save": [0, len(stages)]}]
        run = dp.apply(stages, {"items": items}, loss=models.mean_of_squares)
        dp.watch(run, example)
        self.assertTrue(torch.equal(example.grad, torch.ones_like(example)))
        self.assertTrue(all(p.grad is None for p in run.parameters()))

    def test_peak_of_transformers(self):
        self.check_peaks(models.transformer, 12, 3)

    def test_peak_of_convolutions(self):
        self.check_peaks(models.convolutional, 12, 15)

    def test_peak_with_options_within_ranges(self):
        self.check_peaks(models.perceptrons, 25, 3, {
            "products": ["aten.addmm.default"],
            "others": ["aten.gelu.default", "aten.native_layer_norm.default"]})

    def test_a_line_for_every_stage_and_phase(self):
        stages, example = models.transformer()
        chain = dp.measure(stages, example, loss=models.mean_of_squares, fake=True)
        items = [{"ckpt": [0, 2]}, {"save": [3, 7]}]
        run = dp.apply(stages, {"items": items}, loss=models.mean_of_squares)
        verdict = dp.verify(chain, evaluate(chain, items, frame_bytes(chain)),
                            dp.watch(run, example))
        rows = [(phase, stage) for phase, stage, _, _ in verdict.rows]
        self.assertEqual(rows, [("forward", i) for i in range(8)] +
                         [("recompute", i) for i in range(3)] +
                         [("backward", i) for i in range(8)])
        for phase, stage, predicted, measured in verdict.rows:
            if phase == "backward" and stage > 0:
                self.assertLess(abs(predicted / measured - 1), 0.05, str(verdict))
        self.assertEqual(str(verdict).count("passes"), 3)
        text = str(verdict).splitlines()
        self.assertEqual(len(text), 21)
        self.assertTrue(all(len(line) < 80 for line in text))

    def test_checkpoints_hold_less(self):
        stages, example = models.transformer()
        held = [dp.watch(dp.apply(stages, {"items": items}), example)["held"]
                for items in ([{"save": [0, 6]}], [{"ckpt": [0, 5]}, {"save": [6, 6]}])]
        self.assertLess(held[1], held[0] / 4)


PRODUCTS = ["aten.addmm.default", "aten.mm.default", "aten.bmm.default"]


class SelectiveCase(unittest.TestCase):

    def setUp(self):
        self.stages = [models.Mlp(32, 128), models.Attention(32, 4), models.Mlp(32, 128, 0.0)]
        self.example = torch.randn(4, 24, 32)
        self.chain = dp.measure(self.stages, self.example, loss=models.mean_of_squares,
                                repeats=1, selective={"sac:matmul": PRODUCTS})


class Selective(SelectiveCase):
    def test_products_are_kept_and_counted(self):
        option = self.chain["stages"][1]["options"][0]
        self.assertEqual(option["policy"], {"aten.addmm.default": [0, 1, 2]})
        # The three products, the output of the stage is not among them; its input is.
        self.assertEqual(option["saved"], 4 * (4 * 24 * 32 * 4))

    def test_gradients_with_options(self):
        plan = {"items": [{"opt": [0, 2], "id": "sac:matmul"}, {"save": [3, 3]}]}
        parameters = [p for stage in self.stages for p in stage.parameters()]
        plain = dp.apply(self.stages, {"items": [{"save": [0, 3]}]},
                         loss=models.mean_of_squares)
        chosen = dp.apply(self.stages, plan, chain=self.chain, loss=models.mean_of_squares)
        for a, b in zip(gradients(plain, parameters, self.example)[1],
                        gradients(chosen, parameters, self.example)[1]):
            self.assertTrue(torch.equal(a, b))

    def test_held_bytes_with_options(self):
        plan = {"items": [{"opt": [0, 2], "id": "sac:matmul"}, {"save": [3, 3]}]}
        chosen = dp.apply(self.stages, plan, chain=self.chain, loss=models.mean_of_squares)
        stages = self.chain["stages"]
        # Inputs are in each, and only the first is not the output of another.
        expected = sum(stage["options"][0]["saved"] for stage in stages[:3]) + \
            stages[3]["saved"] - stages[0]["out"]
        held = dp.watch(chosen, self.example)["held"]
        self.assertLess(abs(held / expected - 1), 0.02)

    def test_each_run_counts_for_itself(self):
        """As older releases ask: in both runs, and an odd number of times in each."""
        class Context:
            is_recompute = False

        ask, context = _Ask({"aten.mm.default": [0, 2]}), Context()
        first = [ask(context, torch.ops.aten.mm.default) for _ in range(3)]
        context.is_recompute = True
        second = [ask(context, torch.ops.aten.mm.default) for _ in range(3)]
        self.assertEqual(first, second)
        self.assertNotEqual(first[0], first[1])



class SelectiveWithin(SelectiveCase):
    """Options within a range, held against the same range without."""

    def within(self, inner, **words):
        items = [{"ckpt": [0, 2], "inner": inner}, {"save": [3, 3]}]
        return dp.apply(self.stages, {"items": items}, chain=self.chain,
                        loss=models.mean_of_squares, **words)

    def by_option(self, **words):
        return self.within([{"opt": [0, 2], "id": "sac:matmul"}], **words)

    def test_the_first_run_keeps_nothing(self):
        held = [dp.watch(run, self.example)["held"]
                for run in (self.by_option(), self.within([{"save": [0, 2]}]))]
        self.assertEqual(held[0], held[1])

    def test_the_second_run_keeps_the_products(self):
        """So they are made twice, where a range within the range makes them three times."""
        def products(run):
            with _Counter() as counter:
                run(self.example).backward()
            return counter.counts["aten.addmm.default"]

        ranges = [{"ckpt": [i, i]} for i in range(3)]
        self.assertEqual(products(self.within(ranges, early_stop=False)), 3 * 7)
        self.assertEqual(products(self.by_option(early_stop=False)), 2 * 7)
        # Of the last stage nothing is wanted before its own turn: it runs twice anyway.
        self.assertLessEqual(products(self.by_option()), 2 * 7)

    def test_nothing_is_kept_in_runs_between(self):
        """Of three ranges in each other the last run of the innermost keeps, no other one."""
        inner = [{"ckpt": [0, 2], "inner": [{"ckpt": [0, 1], "inner": [
            {"opt": [0, 0], "id": "sac:matmul"}, {"save": [1, 1]}]}, {"save": [2, 2]}]}]
        items = [{"ckpt": [0, 2], "inner": inner}, {"save": [3, 3]}]
        run = dp.apply(self.stages, {"items": items}, chain=self.chain,
                       loss=models.mean_of_squares, early_stop=False)
        kept = []
        option = run.items[0].inner[0].inner[0].inner[0]
        make_contexts = option.make_contexts
        option.make_contexts = lambda: kept.append(1) or make_contexts()
        run(self.example).backward()
        self.assertEqual(len(kept), 1)

    def test_second_backward_with_a_retained_graph(self):
        """The range keeps for each backward anew, also what then nobody asked for: the last
        product of the last Mlp."""
        items = [{"ckpt": [0, 3], "inner": [{"opt": [0, 2], "id": "sac:matmul"},
                                            {"save": [3, 3]}]}]
        run = dp.apply(self.stages, {"items": items}, chain=self.chain,
                       loss=models.mean_of_squares)
        parameters = list(run.parameters())
        with LiveBytes() as live:
            loss = run(self.example)
            held = live.live
            once = torch.autograd.grad(loss, parameters, retain_graph=True)
            self.assertEqual(live.live - held, bytes_of(once))
            twice = torch.autograd.grad(loss, parameters)
        for a, b in zip(once, twice):
            self.assertTrue(torch.equal(a, b))

    def test_nothing_is_left_after_the_backward(self):
        run = self.by_option(early_stop=False)
        with LiveBytes() as live:
            loss = run(self.example)
            loss.backward()
            for parameter in run.parameters():
                parameter.grad = None
            self.assertEqual(live.live, 4)  # the loss, whose graph is there

    def test_a_difference_of_nothing_has_no_sign(self):
        lines = str(dp.Verdict(["s"], [("forward", 0, 1967616, 1967620)], set(), 10, 11))
        self.assertTrue(lines.splitlines()[1].endswith(" 0.0%"), lines)
        self.assertTrue(lines.splitlines()[2].endswith("-9.1%"), lines)

    def test_a_line_for_every_stage_and_phase(self):
        items = [{"ckpt": [0, 2], "inner": [{"opt": [0, 1], "id": "sac:matmul"},
                                            {"save": [2, 2]}]}, {"save": [3, 3]}]
        run = dp.apply(self.stages, {"items": items}, chain=self.chain,
                       loss=models.mean_of_squares, early_stop=False)
        verdict = dp.verify(self.chain, evaluate(self.chain, items, frame_bytes(self.chain)),
                            dp.watch(run, self.example))
        self.assertEqual([(phase, stage) for phase, stage, _, _ in verdict.rows],
                         [("forward", i) for i in range(4)] +
                         [("recompute", i) for i in range(3)] +
                         [("backward", i) for i in range(4)])
        # What an option does not keep is there while its stage runs forward, and in no chain.
        for phase, stage, predicted, measured in verdict.rows:
            if phase == "backward" or (phase, stage) == ("recompute", 2):
                self.assertTrue(-0.005 < predicted / measured - 1 < 0.06, str(verdict))


@unittest.skipUnless(has_command("plan"), "no drystone plan: DRYSTONE")
class Command(unittest.TestCase):
    def setUp(self):
        self.stages, self.example = models.transformer()
        self.chain = dp.measure(self.stages, self.example, loss=models.mean_of_squares,
                                repeats=1)
        self.most = dp.plan(self.chain, 1 << 40)["predicted"]["peak_bytes"]

    def test_it_judges_as_the_rules_say(self):
        """The command's timeline, and one by the rules written down once more."""
        for method in ("none", "block", "every", "one-level", "nested"):
            made = dp.plan(self.chain, self.most, method=method)
            again = evaluate(self.chain, made["items"], frame_bytes(self.chain))
            self.assertEqual([step[1:] for step in made["timeline"] if step[3] is not None],
                             [step[1:] for step in again["timeline"]], method)

    def test_a_plan_keeps_its_promise(self):
        for budget in (self.most * 8 // 10, self.most * 9 // 10):
            made = dp.plan(self.chain, budget)
            self.assertLessEqual(made["predicted"]["peak_bytes"], budget)
            run = dp.apply(self.stages, made, loss=models.mean_of_squares)
            verdict = dp.verify(self.chain, made, dp.watch(run, self.example))
            self.assertTrue(-0.005 < verdict.error < 0.03, str(verdict))
            self.assertLessEqual(verdict.measured_peak + frame_bytes(self.chain), budget * 1.005)

    def check_options(self, stages, example, method, is_wanted):
        """Some of the plans between the least budget and the most are wanted; all are true."""
        chain = dp.measure(stages, example, loss=models.mean_of_squares, fake=True,
                           selective={"sac:matmul": PRODUCTS})
        free = dp.plan(chain, 1 << 40, method=method)
        most, least = free["predicted"]["peak_bytes"], free["min_feasible_budget"]["bytes"]
        made = [dp.plan(chain, least + (most - least) * part // 8, method=method)
                for part in range(8)]
        chosen = [plan for plan in made if is_wanted(plan["items"])]
        self.assertTrue(chosen)
        parameters = [p for stage in stages for p in stage.parameters()]
        plain = dp.apply(stages, {"items": [{"save": [0, len(stages)]}]},
                         loss=models.mean_of_squares)
        for plan in chosen:
            again = evaluate(chain, plan["items"], frame_bytes(chain))
            self.assertEqual([step[1:] for step in plan["timeline"] if step[3] is not None],
                             [step[1:] for step in again["timeline"]])
            run = dp.apply(stages, plan, chain=chain, loss=models.mean_of_squares)
            for a, b in zip(gradients(plain, parameters, example)[1],
                            gradients(run, parameters, example)[1]):
                self.assertTrue(torch.equal(a, b))
            verdict = dp.verify(chain, plan, dp.watch(run, example))
            self.assertTrue(-0.01 < verdict.error < 0.1, str(verdict))

    def test_options_are_planned_and_run(self):
        """Every product kept costs little time: a budget between takes it for some stages."""
        self.check_options([models.Mlp(32, 256) for _ in range(4)], torch.randn(16, 32, 32),
                           "one-level", lambda items: any("opt" in item for item in items))

    def test_options_within_ranges_are_planned_and_run(self):
        self.check_options([models.Mlp(32, 256) for _ in range(8)], torch.randn(16, 32, 32),
                           "nested", has_inner_option)

    def test_operations_become_options_that_are_run(self):
        """What the command chose to keep is kept: the plan's own policies carry it out."""
        stages, example = [models.Mlp(32, 256, 0) for _ in range(4)], torch.randn(16, 32, 32)
        chain = dp.measure(stages, example, loss=models.mean_of_squares, repeats=1)
        wide = 16 * 32 * 256 * 4
        for stage in chain["stages"][:4]:
            stage["operations"] = [
                {"name": "aten.addmm.default", "bytes": wide, "time": 100},
                {"name": "aten.gelu.default", "bytes": wide, "time": 10, "inputs": [0]}]
        free = dp.plan(chain, 1 << 40)
        made = dp.plan(chain, free["predicted"]["peak_bytes"] - 2 * wide)
        chosen = [item for item in made["items"] if "opt" in item]
        self.assertIn({"aten.addmm.default": [0]}, [item["policy"] for item in chosen])
        parameters = [p for stage in stages for p in stage.parameters()]
        plain = dp.apply(stages, free, loss=models.mean_of_squares)
        run = dp.apply(stages, made, loss=models.mean_of_squares)
        for a, b in zip(gradients(plain, parameters, example)[1],
                        gradients(run, parameters, example)[1]):
            self.assertTrue(torch.equal(a, b))
        counts = []
        for planned in (plain, run):
            with _Counter() as counter:
                planned(example).backward()
            counts.append(counter.counts["aten.gelu.default"])
        kept_by_option = sum(item["opt"][1] - item["opt"][0] + 1 for item in chosen
                             if item["policy"] == {"aten.addmm.default": [0]})
        self.assertGreaterEqual(counts[1] - counts[0], kept_by_option)

    def test_what_cannot_fit_says_the_least_budget(self):
        with self.assertRaisesRegex(dp.PlanError, "the least budget is [0-9]+, for "):
            dp.plan(self.chain, "1KiB")

    def test_what_it_refuses_is_an_error_with_its_words(self):
        del self.chain["stages"][2]["out"]
        with self.assertRaisesRegex(dp.PlanError, r"stages\[2\].out") as caught:
            dp.plan(self.chain, self.most)
        self.assertEqual(caught.exception.status, 3)

    def test_ranks_hash_the_command_s_hash(self):
        one, two = (dp.plan(self.chain, self.most) for _ in range(2))
        self.assertEqual(dp.rank_hash(one), dp.rank_hash(two))
        self.assertNotEqual(dp.rank_hash(one), dp.rank_hash(dp.plan(self.chain, self.most,
                                                                    method="block")))


RANK = """
import sys
sys.path.insert(0, {here!r})
import torch_here
import torch.distributed as dist
from drystone import plan as dp
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
plan = {{"items": [{{"ckpt": [0, 1]}}, {{"save": [2, 2 + rank]}}]}}
try:
    dp.check_ranks(plan)
    print("same")
except dp.PlanError as why:
    print("differ:", why)
plan = dp.share(plan if rank == 0 else None)
print(plan["items"][1]["save"], dp.check_ranks(plan) == dp.rank_hash(plan))
dist.destroy_process_group()
"""


class Ranks(unittest.TestCase):
    def test_two_ranks_agree_after_sharing(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            text = RANK.format(here=os.path.dirname(os.path.abspath(__file__)))
            words = [sys.executable, "-W", "ignore", "-c", text]
            ranks = [subprocess.Popen([*words, str(rank), folder + "/meeting"],
                                      stdout=subprocess.PIPE, text=True) for rank in range(2)]
            said = [rank.communicate(timeout=1800)[0].splitlines() for rank in ranks]
        for lines in said:
            self.assertEqual(lines, ["differ: ranks [1] have another plan than rank 0: share() "
                                     "it first", "[2, 2] True"])


if __name__ == "__main__":
    print(f"torch {torch.__version__}, seed {SEED}")
    torch_here.main()
