#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options that offload: gradients, bytes on the device, and what has to stay."""
import os
import random
import sys
import unittest
from unittest import mock

import torch_here
import torch
from torch import nn

import models
from command_here import has_command
from evaluate import evaluate
from drystone import plan as dp
from drystone.plan._live import LiveBytes
from drystone.plan._offload import Link, cover, fit, wait_for
from drystone.plan._policy import _Counter
from drystone.plan._verify import frame_bytes
from stepping import gradients

SEED = int(os.environ.get("DRY_TEST_SEED", "20261121"))
PRODUCTS = {"sac": ["aten.addmm.default", "aten.convolution.default", "aten.gelu.default"]}


def with_offloading(chain, part=1):
    """Each stage but the last can send so much of what it keeps, of all or by a policy."""
    for stage in chain["stages"][:-1]:
        beside = (stage["saved"] - stage["saved_has_input"] * stage["input"] -
                  stage["saved_has_output"] * stage["out"])
        whole = {"id": "away", "saved": stage["saved"], "recompute": 0,
                 "bwd_tmp": stage["bwd_tmp"], "offload": int(beside * part)}
        half = [dict(option, id="sac-away", offload=int(
                    max(0, option["saved"] - stage["saved"] + beside) * part))
                for option in stage.get("options", [])]
        stage["options"] = [*stage.get("options", []), whole, *half]
    return chain


def measured(stages, example, part=1):
    chain = dp.measure(stages, example, loss=models.mean_of_squares, fake=True,
                       selective=PRODUCTS)
    before = chain["input"]["bytes"]
    for stage in chain["stages"]:
        stage["input"], before = before, stage["out"]
    chain = with_offloading(chain, part)
    for stage in chain["stages"]:
        del stage["input"]
    return chain


class Choice(unittest.TestCase):
    def test_what_fits_is_the_same_for_what_was_used(self):
        rng = random.Random(SEED)
        for _ in range(200):
            sizes = [rng.randint(1, 40) for _ in range(rng.randint(0, 9))]
            budget = rng.randint(0, 150)
            chosen = fit(sizes, budget)
            used = sum(sizes[index] for index in chosen)
            self.assertLessEqual(used, budget)
            self.assertEqual(fit(sizes, used), chosen)
            self.assertEqual(sorted(cover(sizes, used)), sorted(chosen))

    def test_what_covers_is_enough_if_there_is_enough(self):
        rng = random.Random(SEED)
        for _ in range(200):
            sizes = [rng.randint(1, 40) for _ in range(rng.randint(0, 9))]
            wanted = rng.randint(0, 150)
            moved = sum(sizes[index] for index in cover(sizes, wanted))
            self.assertGreaterEqual(moved, min(wanted, sum(sizes)))


class Gradients(unittest.TestCase):
    def check_random_plans(self, make, count):
        """And the peak is what the rules say, whatever is nested in what."""
        rng = random.Random(SEED)
        stages, example = make()
        chain = measured(stages, example, part=0.7)
        parameters = [p for stage in stages for p in stage.parameters()]

        def new(items, **words):
            return dp.apply(stages, {"items": items}, chain=chain,
                            loss=models.mean_of_squares, **words)

        expected = gradients(new([{"save": [0, len(stages)]}]), parameters, example)
        for _ in range(count):
            items = models.random_plan(rng, len(stages) + 1, ["away", "sac", "sac-away"])
            run = new(items, early_stop=rng.random() < 0.5)
            loss, grads = gradients(run, parameters, example)
            self.assertTrue(torch.equal(loss, expected[0]))
            for a, b in zip(expected[1], grads):
                self.assertTrue(torch.equal(a, b), (SEED, items))
            verdict = dp.verify(chain, evaluate(chain, items, frame_bytes(chain)),
                                dp.watch(run, example))
            self.assertGreater(verdict.error, -0.005, (SEED, items, str(verdict)))

    def test_of_perceptrons(self):
        self.check_random_plans(models.perceptrons, 25)

    def test_of_convolutions(self):
        def make():
            stages, example = models.convolutional()
            for stage in stages[:-1]:  # so that running statistics are not in the way
                stage.norm.track_running_stats = False
                stage.norm.running_mean = stage.norm.running_var = None
                stage.norm.num_batches_tracked = None
            return stages, example
        self.check_random_plans(make, 15)


class OnDevice(unittest.TestCase):
    def setUp(self):
        self.stages, self.example = models.perceptrons()
        self.chain = measured(self.stages, self.example)
        self.all_away = [{"opt": [0, 5], "id": "away"}, {"save": [6, 6]}]

    def new(self, items, **words):
        return dp.apply(self.stages, {"items": items}, chain=self.chain,
                        loss=models.mean_of_squares, **words)

    def test_every_stage_has_the_bytes_that_the_rules_say(self):
        verdict = dp.verify(self.chain, evaluate(self.chain, self.all_away,
                                                 frame_bytes(self.chain)),
                            dp.watch(self.new(self.all_away), self.example))
        for phase, stage, predicted, seen in verdict.rows:
            if phase == "forward" or stage > 0:
                self.assertTrue(-0.001 < predicted / seen - 1 < 0.02, str(verdict))

    def test_only_inputs_of_stages_and_the_last_are_held(self):
        """All but the last stage's is away, whose next one is the loss."""
        held = dp.watch(self.new(self.all_away), self.example)["held"]
        saved = dp.watch(self.new([{"save": [0, 6]}]), self.example)["held"]
        outputs = sum(stage["out"] for stage in self.chain["stages"][:6])
        self.assertLess(held, outputs + 100)
        self.assertLess(held, saved / 4)

    def test_nothing_runs_again(self):
        counts = []
        for items in ([{"save": [0, 6]}], self.all_away,
                      [{"ckpt": [0, 5]}, {"save": [6, 6]}],
                      [{"ckpt": [0, 5], "inner": [{"opt": [0, 5], "id": "away"}]},
                       {"save": [6, 6]}]):
            with _Counter() as counter:
                self.new(items)(self.example).backward()
            counts.append(counter.counts["aten.gelu.default"])
        self.assertEqual(counts[0], counts[1])
        self.assertEqual(counts[2], counts[3])

    def test_the_caller_s_loss_is_a_stage_too(self):
        run = dp.apply(self.stages, {"items": self.all_away}, chain=self.chain)
        with LiveBytes() as live:
            y = run(self.example)
            outputs = sum(stage["out"] for stage in self.chain["stages"][:6])
            self.assertLess(live.live, outputs + 100)
            models.mean_of_squares(y).backward()

    def test_nothing_is_left_after_the_backward(self):
        for name in ("away", "sac-away"):
            away = {"opt": [0, 5], "id": name}
            for items in ([away], [{"ckpt": [0, 5], "inner": [away]}]):
                run = self.new([*items, {"save": [6, 6]}], early_stop=False)
                with LiveBytes() as live:
                    loss = run(self.example)
                    loss.backward()
                    for parameter in run.parameters():
                        parameter.grad = None
                    self.assertEqual(live.live, 4, items)

    def test_two_forwards_before_their_backwards(self):
        run = self.new(self.all_away)
        parameters = list(run.parameters())
        torch.manual_seed(3)
        losses = [run(self.example) for _ in range(2)]
        both = [torch.autograd.grad(loss, parameters) for loss in losses]
        plain = self.new([{"save": [0, 6]}])
        torch.manual_seed(3)
        losses = [plain(self.example) for _ in range(2)]
        for expected, got in zip([torch.autograd.grad(l, parameters) for l in losses], both):
            self.assertTrue(all(map(torch.equal, expected, got)))

    def test_second_backward_with_a_retained_graph(self):
        for items in (self.all_away,
                      [{"ckpt": [0, 5], "inner": [{"opt": [0, 5], "id": "away"}]},
                       {"save": [6, 6]}]):
            run = self.new(items)
            parameters = list(run.parameters())
            loss = run(self.example)
            once = torch.autograd.grad(loss, parameters, retain_graph=True)
            twice = torch.autograd.grad(loss, parameters)
            self.assertTrue(all(map(torch.equal, once, twice)))

    def test_without_gradients_nothing_moves(self):
        with torch.no_grad():
            run = self.new(self.all_away)
            run.eval()
            self.assertTrue(torch.equal(run(self.example),
                                        self.new([{"save": [0, 6]}])(self.example)))


class Twice(nn.Module):
    """Saves the same storage as it is, transposed and in part."""

    def forward(self, x):
        y = x.exp()
        z = y * y.t().contiguous().t() + y[1:].sin().sum() + (y.view(-1)[3:9] ** 2).sum()
        return z.sum(0, keepdim=True).expand(x.shape) * 1.0


class Changes(nn.Module):
    def __init__(self, late=False):
        super().__init__()
        self.late = late

    def forward(self, x):
        y = x.exp()
        z = y.sin()
        if not self.late:
            y.add_(1)
        self.kept = y
        return z * 2


class Mutates(nn.Module):
    """Changes what the stage before saved."""

    def __init__(self, before):
        super().__init__()
        self.before = [before]

    def forward(self, x):
        with torch.no_grad():
            self.before[0].kept.add_(1)
        return x * 2


class Saved(unittest.TestCase):
    def run_away(self, stages, x, offload=1 << 40, items=None):
        count = len(stages)
        chain = {"stages": [{"saved": 1, "options": [
            {"id": "away", "saved": 1, "offload": offload}]} for _ in range(count + 1)]}
        items = items or [{"opt": [0, count - 1], "id": "away"}, {"save": [count, count]}]
        return dp.apply(stages, {"items": items}, chain=chain, loss=lambda y: y.sum())(x)

    def test_a_storage_moves_once_and_its_views_are_right(self):
        x = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
        stages = [Twice(), nn.Identity()]
        expected = torch.autograd.grad(stages[0](x).sum(), x)[0]
        got = torch.autograd.grad(self.run_away(stages, x), x)[0]
        self.assertTrue(torch.equal(expected, got))

    def test_weights_and_ends_do_not_move(self):
        """So a step makes as many bytes as it would if nothing were to be offloaded."""
        stages = [nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)]
        parameters = [*stages[0].parameters(), *stages[2].parameters()]
        x = torch.randn(4, 8)
        peaks = []
        for offload in (0, 1 << 40):
            items = [{"opt": [0, 2], "id": "away"}, {"save": [3, 3]}]
            if not offload:
                items = [{"save": [0, 3]}]
            with LiveBytes() as live:
                torch.autograd.grad(self.run_away(stages, x, offload, items), parameters)
            peaks.append(live.peak)
        self.assertEqual(peaks[0], peaks[1])

    def test_changing_what_was_saved_is_an_error(self):
        for stages in ([Changes(), nn.Identity()],
                       (lambda first: [first, Mutates(first)])(Changes(late=True))):
            x = torch.randn(6, 6, requires_grad=True)
            loss = self.run_away(stages, x)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

    def test_changing_it_when_it_is_away_is_none(self):
        first = Changes(late=True)
        x = torch.randn(6, 6, requires_grad=True)
        loss = self.run_away([first, nn.Identity(), Mutates(first)], x)
        self.assertTrue(torch.equal(torch.autograd.grad(loss, x)[0],
                                    4 * x.exp() * x.exp().cos()))

    def test_complex_conjugates_stay_right(self):
        def stage(x):
            z = torch.complex(x, x * 2)
            return (z.conj() * z.exp()).abs()

        x = torch.randn(5, requires_grad=True)
        expected = torch.autograd.grad(stage(x).sum(), x)[0]
        got = torch.autograd.grad(self.run_away([stage, nn.Identity()], x), x)[0]
        self.assertTrue(torch.equal(expected, got))

    def test_gradients_of_gradients(self):
        x = torch.randn(5, dtype=torch.float64, requires_grad=True)
        stages = [lambda x: x.exp().sin(), lambda x: x ** 3]
        results = []
        for run in (lambda x: stages[1](stages[0](x)).sum(),
                    lambda x: self.run_away(stages, x)):
            first = torch.autograd.grad(run(x), x, create_graph=True)[0]
            results.append(torch.autograd.grad(first.sum(), x)[0])
        self.assertTrue(torch.equal(*results))


class Streams(unittest.TestCase):
    def test_copies_wait_and_are_waited_for(self):
        """As a GPU would see it: the copy comes after what is queued, and before its use."""
        said = mock.Mock()
        device = torch.device("cuda")
        with mock.patch.multiple("torch.cuda", Stream=mock.Mock(return_value=said.side),
                                 current_stream=mock.Mock(return_value=said.main),
                                 stream=mock.MagicMock()):
            done = Link().copy(said.to, said.source, device)
            wait_for(done, device)
        self.assertEqual(said.mock_calls, [
            mock.call.side.wait_stream(said.main),
            mock.call.to.copy_(said.source, non_blocking=True),
            mock.call.side.record_event(),
            mock.call.main.wait_event(done)])


@unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
class OnCuda(unittest.TestCase):
    def test_a_step_has_the_bytes_and_the_gradients(self):
        stages = [models.Mlp(256, 2048, 0.0).cuda() for _ in range(6)]
        example = torch.randn(64, 64, 256, device="cuda")
        chain = dp.measure(stages, example, loss=models.mean_of_squares, offload=1e18)
        parameters = [p for stage in stages for p in stage.parameters()]
        plain = dp.apply(stages, {"items": [{"save": [0, 6]}]}, loss=models.mean_of_squares)
        expected = gradients(plain, parameters, example)[1]
        for inner in ([{"opt": [0, 5], "id": "offload"}],
                      [{"ckpt": [0, 5], "inner": [{"opt": [0, 5], "id": "offload"}]}]):
            items = [*inner, {"save": [6, 6]}]
            run = dp.apply(stages, {"items": items}, chain=chain, loss=models.mean_of_squares)
            for _ in range(3):
                self.assertTrue(all(map(torch.equal, expected,
                                        gradients(run, parameters, example)[1])))
            verdict = dp.verify(chain, evaluate(chain, items, frame_bytes(chain)),
                                dp.watch(run, example))
            self.assertTrue(-0.03 < verdict.error < 0.1, str(verdict))


class Refused(unittest.TestCase):
    def check(self, option, text):
        stages = [nn.Linear(4, 4), nn.Linear(4, 4)]
        chain = {"stages": [{"saved": 64, "options": [option]}, {"saved": 64}]}
        items = [{"opt": [0, 0], "id": "away"}, {"save": [1, 1]}]
        with self.assertRaisesRegex(dp.PlanError, text):
            dp.apply(stages, {"items": items}, chain=chain)

    def test_options_that_nobody_can_carry_out(self):
        self.check({"id": "other", "saved": 64, "offload": 8},
                   "stage 0 has no option 'away' with a policy, or that offloads")
        self.check({"id": "away", "saved": 64}, "with a policy, or that offloads")
        self.check({"id": "away", "saved": 32, "offload": 8}, "has no policy that says what")

    def test_a_chain_that_is_none(self):
        for chain in ("chain.json", [], {"items": []}):
            with self.assertRaisesRegex(dp.PlanError, "chain is what measure"):
                dp.apply([nn.Identity()], {"items": [{"save": [0, 0]}]}, chain=chain)

    def test_a_rate_that_is_none(self):
        for rate in (0, -1.0, float("nan"), True, "25GB"):
            with self.assertRaisesRegex(dp.PlanError, "bytes a second"):
                dp.measure([nn.Linear(4, 4)], torch.randn(2, 4), offload=rate)


@unittest.skipUnless(has_command("plan"), "no drystone plan: DRYSTONE")
class Command(unittest.TestCase):
    def test_from_measure_to_a_step(self):
        """With a link that hides all of it, and a budget that all saved does not fit."""
        stages, example = [models.Mlp(32, 256) for _ in range(8)], torch.randn(16, 32, 32)
        chain = dp.measure(stages, example, loss=models.mean_of_squares, fake=True,
                           offload=float("inf"), offload_least=1024)
        self.assertEqual(["options" in stage for stage in chain["stages"]],
                         [True] * 8 + [False])
        free = dp.plan(chain, 1 << 40)
        most, least = free["predicted"]["peak_bytes"], free["min_feasible_budget"]["bytes"]
        made = dp.plan(chain, (most + least) // 2)
        self.assertIn("offload", [item.get("id") for item in made["items"]])
        self.assertEqual(made["predicted"]["extra_ns"], 0)
        again = evaluate(chain, made["items"], frame_bytes(chain))
        self.assertEqual([step[1:] for step in made["timeline"] if step[3] is not None],
                         [step[1:] for step in again["timeline"]])
        run = dp.apply(stages, made, chain=chain, loss=models.mean_of_squares)
        parameters = list(run.parameters())
        plain = dp.apply(stages, free, loss=models.mean_of_squares)
        for a, b in zip(gradients(plain, parameters, example)[1],
                        gradients(run, parameters, example)[1]):
            self.assertTrue(torch.equal(a, b))
        verdict = dp.verify(chain, made, dp.watch(run, example))
        self.assertTrue(-0.005 < verdict.error < 0.03, str(verdict))

    def test_a_slow_link_offers_nothing(self):
        stages = [models.Mlp(32, 256) for _ in range(3)]
        chain = dp.measure(stages, torch.randn(16, 32, 32), fake=True, offload=1.0)
        self.assertFalse([stage for stage in chain["stages"] if "options" in stage])

    def test_without_the_chain_it_is_refused(self):
        with self.assertRaisesRegex(dp.PlanError, "give the chain too"):
            dp.apply([nn.Identity()], {"items": [{"opt": [0, 0], "id": "offload"}]})


if __name__ == "__main__":
    print(f"torch {torch.__version__}, seed {SEED}")
    torch_here.main()
