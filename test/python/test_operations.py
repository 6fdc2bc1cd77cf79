#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measure() says stages are made of, from there to a plan and a step; and storages that go
through several stages."""
import collections
import unittest

import torch_here
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

import architectures
import models
from command_here import has_command
from evaluate import evaluate
from drystone import plan as dp
from drystone.plan._measure import Estimate, Runner
from drystone.plan._operations import ASKING, BESIDE, STAGE_MAX, operations_of
from drystone.plan._policy import _Counter
from drystone.plan._verify import frame_bytes
from stepping import gradients

BLOCKS = 4


def transformer(dropout=0.0):
    blocks = [architectures.PreNorm(F.gelu, dropout) for _ in range(BLOCKS)]
    return blocks, torch.randn(4, architectures.LENGTH, architectures.WIDTH)


def lines_of(stage, x, **words):
    lines = dp.measure([stage], x, operations=True, **words)["stages"][0]["operations"]
    return [line for line in lines if line["name"] != ASKING]


def find(lines, name):
    return [line for line in lines if line["name"] == name]


class Operations(unittest.TestCase):
    def test_of_a_perceptron(self):
        x = torch.randn(5, 8, requires_grad=True)
        stage = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        first, gelu, last = [line for line in lines_of(stage, x, repeats=1)
                             if line["name"] in ("aten.addmm.default", "aten.gelu.default")]
        self.assertEqual((first["bytes"], gelu["bytes"]), (5 * 16 * 4, 5 * 16 * 4))
        self.assertEqual((first["inputs"], gelu["inputs"], last["inputs"]), ([], [0], [1]))
        # The end is not run again, and its result is held anyway.
        self.assertEqual((last["bytes"], last["time"]), (0, 0))
        self.assertGreater(min(first["time"], gelu["time"]), 0)

    def test_bytes_are_what_the_stage_saves(self):
        for name, layer, _, _ in architectures.new():
            x = torch.randn(2, architectures.LENGTH, architectures.WIDTH)
            if "ResNet" in name:
                x = torch.randn(2, 64, 28, 28)
            chain = dp.measure([layer], x.requires_grad_(), operations=True, repeats=1)
            stage = chain["stages"][0]
            read = sum(line["bytes"] for line in stage["operations"]
                       if not line.get("unread"))
            ends = (stage["saved_has_input"] * chain["input"]["bytes"] +
                    stage["saved_has_output"] * stage["out"])
            self.assertEqual(read, stage["saved"] - ends, name)

    def test_times_add_up_to_the_forward_s(self):
        stages, x = transformer()
        for words in ({"fake": True}, {"repeats": 2}):
            stage = dp.measure(stages[:1], x, operations=True, **words)["stages"][0]
            total = sum(line["time"] for line in stage["operations"]
                        if line["name"] != ASKING)
            self.assertLessEqual(total, stage["fwd"] * 1.001)
            # The end is not run again; how much that is, only the estimate says each time.
            self.assertGreater(total, stage["fwd"] * (0.3 if "fake" in words else 0))

    def test_fake_tensors_have_the_same(self):
        stages, x = transformer(0.1)
        real, fake = (lines_of(stages[0], x, **words)
                      for words in ({"repeats": 1}, {"fake": True}))
        keys = ("name", "bytes", "inputs", "keep", "group", "tied_to", "unread")
        self.assertEqual([[line.get(key) for key in keys] for line in real],
                         [[line.get(key) for key in keys] for line in fake])

    def test_what_is_written_in_place_is_made_again(self):
        def stage(x):
            y = x.exp()
            z = y.sin()
            z.add_(1)
            return (z * y).cos()

        lines = lines_of(stage, torch.randn(50, 50, requires_grad=True), repeats=1)
        self.assertEqual([(line["name"], line.get("keep")) for line in lines],
                         [("aten.exp.default", None), ("aten.sin.default", "never"),
                          ("aten.add_.Tensor", "never"), ("aten.mul.Tensor", None),
                          ("aten.cos.default", None)])
        self.assertEqual(lines[3]["inputs"], [0, 2])

    def test_random_numbers_are_all_kept_or_none(self):
        def stage(x):
            return (x.exp() + torch.rand_like(x)) * torch.randn_like(x)

        lines = lines_of(stage, torch.randn(50, 50, requires_grad=True), repeats=1)
        self.assertEqual([line["name"] for line in lines if line.get("group") == 1],
                         ["aten.rand_like.default", "aten.randn_like.default"])

    def test_attention_without_dropout_is_not_random(self):
        def stage(x):
            return F.scaled_dot_product_attention(x, x, x)

        x = torch.randn(2, 2, 16, 8, requires_grad=True)
        lines = lines_of(stage, x, repeats=1)
        self.assertTrue(any("scaled_dot_product" in line["name"] for line in lines))
        self.assertFalse([line for line in lines if "group" in line])

    def test_dropout_of_a_gpu_may_be_kept(self):
        """It draws its mask and nothing in place. No GPU is asked: sizes are all there is."""
        with FakeTensorMode(), torch.device("cuda"):
            layer = architectures.PreNorm(F.gelu, 0.1)
            x = torch.empty(2, 8, architectures.WIDTH, requires_grad=True)
            lines = operations_of(Runner(layer), x, Estimate(1.0, 1.0), 1.0)
        dropped = find(lines, "aten.native_dropout.default")
        self.assertEqual([(line.get("keep"), line["group"]) for line in dropped], [(None, 1)] * 3)
        # Of the residual one the mask is read, a byte each, and the result is beside.
        self.assertEqual(dropped[1]["bytes"], 2 * 8 * architectures.WIDTH)

    def test_what_nobody_reads_is_beside(self):
        """Of a batch norm before a relu two rows are read, and the result is not."""
        stage = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU())
        lines = lines_of(stage, torch.randn(8, 4, 5, 5, requires_grad=True), repeats=1)
        norm = find(lines, "aten.native_batch_norm.default")[0]
        self.assertEqual(norm["bytes"], 2 * 4 * 4)
        beside = find(lines, BESIDE)[0]
        self.assertEqual((beside["bytes"], beside["tied_to"], beside["unread"]),
                         (8 * 4 * 25 * 4, lines.index(norm), True))

    def test_too_many_are_left_out(self):
        def stage(x):
            for _ in range(STAGE_MAX + 1):
                x = x.sin()
            return x

        chain = dp.measure([stage], torch.randn(3, requires_grad=True), operations=True,
                           fake=True)
        self.assertNotIn("operations", chain["stages"][0])

    def test_a_stage_that_changes_its_mind_has_none(self):
        class Moody(nn.Module):
            def __init__(self, length):
                super().__init__()
                self.calls, self.length = 0, length

            def forward(self, x):
                self.calls += 1
                for _ in range(self.length(self.calls)):
                    x = x.sin()
                return x

        # Now so, now so; and less each time, with which no checkpoint works.
        for length in (lambda calls: 2 - calls % 2, lambda calls: 99 - calls):
            chain = dp.measure([Moody(length)], torch.randn(9, requires_grad=True),
                               operations=True)
            self.assertNotIn("operations", chain["stages"][0])

    def test_the_loss_has_none(self):
        stages, x = transformer()
        chain = dp.measure(stages, x, loss=models.mean_of_squares, operations=True, fake=True)
        self.assertEqual(["operations" in stage for stage in chain["stages"]],
                         [True] * BLOCKS + [False])


@unittest.skipUnless(has_command("plan"), "no drystone plan: DRYSTONE")
class Command(unittest.TestCase):
    def plans(self, chain, count=6):
        free = dp.plan(chain, 1 << 40)
        most, least = free["predicted"]["peak_bytes"], free["min_feasible_budget"]["bytes"]
        yield free
        for part in range(count):
            yield dp.plan(chain, least + (most - least) * part // count)

    def check_path(self, dropout, **words):
        """measure(), plan(), apply(): the same gradients, within what was promised."""
        stages, x = transformer(dropout)
        chain = dp.measure(stages, x, loss=models.mean_of_squares, operations=True, **words)
        give_times(chain, dp.measure(stages, x, loss=models.mean_of_squares, operations=True,
                                     fake=True))
        parameters = [p for stage in stages for p in stage.parameters()]
        plans = list(self.plans(chain))
        expected, policies = None, []
        for made in plans:
            run = dp.apply(stages, made, loss=models.mean_of_squares)
            grads = gradients(run, parameters, x)[1]
            expected = expected or grads
            self.assertTrue(all(map(torch.equal, expected, grads)), made["items"])
            again = evaluate_with(chain, made)
            verdict = dp.verify(chain, made, dp.watch(run, x))
            self.assertTrue(-0.005 < verdict.error < 0.15, str(verdict))
            self.assertEqual(max(step[1] for step in again["timeline"]),
                             max(step[1] for step in made["timeline"]
                                 if step[3] is not None))
            policies += [item["policy"] for item in made["items"] if "policy" in item]
        self.assertTrue(any(policies))

    def test_from_measure_to_a_step(self):
        self.check_path(0.0, repeats=1)

    def test_from_measure_to_a_step_with_random_numbers(self):
        self.check_path(0.1, repeats=1)

    def test_from_measure_to_a_step_with_sizes_alone(self):
        self.check_path(0.1, fake=True)

    def test_what_is_kept_is_not_run_again(self):
        """And what is not is, once."""
        stages, x = transformer()
        chain = dp.measure(stages, x, loss=models.mean_of_squares, operations=True, fake=True)
        looked = 0
        for made in self.plans(chain):
            run = dp.apply(stages, made, loss=models.mean_of_squares)
            with _Counter() as counter:
                loss = run(x)
            once = +counter.counts
            with _Counter() as counter:
                loss.backward()
            kept, again = self.expected(chain, made)
            for name in ("aten.gelu.default", "aten._softmax.default", "aten.bmm.default",
                         "aten.native_layer_norm.default"):
                ran = counter.counts[name]
                if name == "aten.bmm.default":  # the backward has four of its own
                    ran -= 4 * BLOCKS
                self.assertEqual(ran, again[name], (name, made["items"]))
                looked += kept[name]
            self.assertEqual(once["aten.gelu.default"], BLOCKS)
        self.assertGreater(looked, 0)

    def test_under_autocast(self):
        """Its copies of weights are there all the time, and casts are never kept: there are fewer
        of them while it remembers."""
        stages, x = transformer()
        parameters = [p for stage in stages for p in stage.parameters()]

        def new(**words):
            return dp.measure(stages, x, loss=models.mean_of_squares, operations=True, **words)

        with torch.autocast("cpu", torch.bfloat16):
            chain = new(repeats=1)
            give_times(chain, new(fake=True))
        copies = sum(2 * p.numel() for stage in stages for layer in stage.modules()
                     if isinstance(layer, nn.Linear) for p in layer.parameters())
        self.assertEqual(chain["persistent"]["buffers"], copies)
        casts = [line for stage in chain["stages"][:-1]
                 for line in find(stage["operations"], "aten._to_copy.default")]
        self.assertTrue(casts)
        self.assertEqual({line["keep"] for line in casts}, {"never"})
        expected, chosen = None, []
        for made in self.plans(chain):
            run = dp.apply(stages, made, loss=models.mean_of_squares)
            for is_inside in (False, True):
                for parameter in parameters:
                    parameter.grad = None
                with torch.autocast("cpu", torch.bfloat16):
                    loss = run(x)
                    if is_inside:
                        loss.backward()
                if not is_inside:
                    loss.backward()
                grads = [parameter.grad for parameter in parameters]
                expected = expected or grads
                self.assertTrue(all(map(torch.equal, expected, grads)), made["items"])
            with torch.autocast("cpu", torch.bfloat16):
                verdict = dp.verify(chain, made, dp.watch(run, x))
            self.assertGreater(verdict.error, -0.005, str(verdict))
            chosen += [item["policy"] for item in made["items"] if item.get("policy")]
        self.assertTrue(chosen)

    def expected(self, chain, made):
        """(calls that are kept, calls that are run again), over all stages, by name."""
        kept, again = collections.Counter(), collections.Counter()
        for item in made["items"]:
            first, last = next(item[key] for key in ("save", "opt", "ckpt") if key in item)
            for stage in chain["stages"][first:last + 1]:
                for name in {line["name"] for line in stage.get("operations", [])}:
                    calls = len(find(stage["operations"], name))
                    number = len(item.get("policy", {}).get(name, []))
                    kept[name] += number if "opt" in item else 0
                    again[name] += 0 if "save" in item else calls - number
        return kept, again

    def test_of_all_architectures(self):
        """A step of each with the least that its options can do."""
        for name, layer, _, _ in architectures.new():
            x = torch.randn(2, architectures.LENGTH, architectures.WIDTH)
            if "ResNet" in name:
                x = torch.randn(2, 64, 28, 28)
            for norm in (m for m in layer.modules() if isinstance(m, nn.BatchNorm2d)):
                norm.track_running_stats = False
                norm.running_mean = norm.running_var = norm.num_batches_tracked = None
            chain = dp.measure([layer], x, loss=models.mean_of_squares, operations=True,
                               repeats=1)
            parameters = [p for p in layer.parameters() if p.requires_grad]
            plain = dp.apply([layer], dp.plan(chain, 1 << 40), loss=models.mean_of_squares)
            expected = gradients(plain, parameters, x)[1]
            for made in self.plans(chain, 3):
                run = dp.apply([layer], made, loss=models.mean_of_squares)
                self.assertTrue(all(map(torch.equal, expected,
                                        gradients(run, parameters, x)[1])), name)


def give_times(chain, other):
    """Of what does not run: so that the plans are the same on a machine that is busy."""
    for stage, source in zip(chain["stages"], other["stages"]):
        stage.update(fwd=source["fwd"], bwd=source["bwd"])
        lines = [line for line in stage.get("operations", []) if line["name"] != ASKING]
        for line, like in zip(lines, source.get("operations", [])):
            line["time"] = like["time"]
        if lines:
            stage["operations"] = lines


def evaluate_with(chain, made):
    """The rules written down once more, with the options that the plan itself describes."""
    stages = []
    for stage in chain["stages"]:
        stages.append({key: value for key, value in stage.items() if key != "operations"})
    for item in made["items"]:
        for number in range(item["opt"][0], item["opt"][1] + 1) if "opt" in item else ():
            stages[number]["options"] = [option_of(chain["stages"][number], item)]
    return evaluate(dict(chain, stages=stages), made["items"], frame_bytes(chain))


def option_of(stage, item):
    """As drystone-chain(5) says: what is not kept is made again all at once."""
    calls, kept = collections.Counter(), []
    for line in stage["operations"]:
        kept.append(calls[line["name"]] in item["policy"].get(line["name"], ()))
        calls[line["name"]] += 1
    pairs = list(zip(stage["operations"], kept))
    read = sum(line["bytes"] for line, _ in pairs if not line.get("unread"))
    again = [line for line, is_kept in pairs if not is_kept and not line.get("unread")]
    return {"id": item["id"],
            "saved": stage["saved"] - read + sum(line["bytes"] for line, is_kept in pairs
                                                 if is_kept),
            "recompute": sum(line["time"] for line in again),
            "bwd_tmp": stage["bwd_tmp"] + sum(line["bytes"] for line in again)}


# --- storages that go through several stages --------------------------------------------


class Masked(nn.Module):
    def __init__(self, is_maker=False):
        super().__init__()
        self.inner, self.is_maker = models.Mlp(32, 64), is_maker

    def forward(self, x, mask=None):
        mask = (x > 0).float() if self.is_maker else mask
        return self.inner(x) * mask, mask


def masked_loss(x, mask):
    return (x * x * mask).mean()


class Shared(unittest.TestCase):
    def check(self, stages, example, wanted):
        """Peaks of a plan that saves all, and of one range a stage."""
        chain = dp.measure(stages, example, loss=masked_loss, repeats=1)
        count = len(stages)
        for items in ([{"save": [0, count]}],
                      [{"save": [0, 0]}, *({"ckpt": [i, i]} for i in range(1, count)),
                       {"save": [count, count]}]):
            run = dp.apply(stages, {"items": items}, loss=masked_loss)
            verdict = dp.verify(chain, evaluate(chain, items, frame_bytes(chain)),
                                dp.watch(run, example))
            self.assertTrue(-0.005 < verdict.error < wanted, str(verdict))
        return chain

    def test_a_mask_that_all_stages_are_given(self):
        x = torch.randn(8, 24, 32)
        chain = self.check([Masked() for _ in range(8)], (x, (x > 0).float()), 0.06)
        self.assertEqual({stage["out"] for stage in chain["stages"][:-1]}, {8 * 24 * 32 * 4})
        self.assertFalse([stage for stage in chain["stages"] if "recomputable" in stage])

    def test_a_mask_that_the_first_stage_makes(self):
        """It is saved in every plan, so that the mask is charged once."""
        chain = self.check([Masked(i == 0) for i in range(12)], torch.randn(8, 24, 32), 0.05)
        self.assertEqual([stage.get("recomputable", True) for stage in chain["stages"]],
                         [False] + [True] * 12)
        self.assertEqual(chain["stages"][0]["out"], 2 * chain["stages"][1]["out"])

    def test_few_stages_are_charged_each(self):
        """Which costs less than a stage that must not run twice."""
        stages = [Masked(i == 0) for i in range(3)]
        chain = dp.measure(stages, torch.randn(8, 24, 32), loss=masked_loss, repeats=1)
        self.assertFalse([stage for stage in chain["stages"] if "recomputable" in stage])
        self.assertEqual({stage["out"] for stage in chain["stages"][:-1]},
                         {2 * 8 * 24 * 32 * 4})


if __name__ == "__main__":
    print(f"torch {torch.__version__}")
    torch_here.main()
