#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""auto_checkpoint with a real PyTorch on a CPU: what it finds, promises and computes."""
import copy
import pickle
import sys
import unittest

import here
import torch
from torch import nn

import whole_models
from command_here import has_command
import drystone
from drystone.checkpoint._call import arguments_of, loss_of
from drystone.checkpoint._size import read_size, write_size
from drystone.plan import PlanError

NO_LIMIT = "100GB"


def step(model, example, loss, seed=7):
    """(loss, gradients, buffers afterwards) of a copy's step, if it is a step that can be one."""
    for parameter in model.parameters():
        parameter.grad = None
    torch.manual_seed(seed)
    args, kwargs = arguments_of(example)
    value = loss_of(model(*args, **kwargs), loss)
    value.backward()
    return [value.detach(), *(p.grad for p in model.parameters()),
            *(b.clone() for b in model.buffers())]


def same(a, b):
    return all(x is y or torch.equal(x, y) for x, y in zip(a, b))


class Sizes(unittest.TestCase):
    def test_units(self):
        self.assertEqual([read_size(x) for x in ("8GB", "8 GiB", "7.5gib", "512MiB", "12", 12)],
                         [8 * 10 ** 9, 8 << 30, 15 << 29, 512 << 20, 12, 12])
        self.assertEqual([write_size(x) for x in (12, 1536, 15 << 29)],
                         ["12 B", "1.5 KiB", "7.5 GiB"])

    def test_what_is_no_size_is_refused(self):
        for wrong in ("", "eight", "8GBit", "-3GB", 0, -1, True, None, 1.5, "0GB"):
            with self.assertRaisesRegex(PlanError, "is not a size"):
                read_size(wrong)


class Gradients(unittest.TestCase):
    """For several budgets: bit for bit those of the model as it is, and the promise is kept."""

    def check(self, make, slack=1.05, shares=(0.1,), **words):
        model, example, loss = make()
        twin = copy.deepcopy(model)
        expected = step(twin, example, loss)
        free = drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss, **words)
        self.assertEqual(free.report.recomputed, [])
        most, least = free.peak_bytes, free.plan["min_feasible_budget"]["bytes"]
        free.undo()
        again = 0
        for share in shares:
            budget = int(least + share * (most - least))
            fresh = copy.deepcopy(model)
            auto = drystone.auto_checkpoint(fresh, example, budget, loss=loss, **words)
            again += sum("save" not in item for item in auto.plan["items"])
            self.assertLessEqual(auto.peak_bytes, budget)
            verdict = auto.verify()
            self.assertGreaterEqual(verdict.predicted_peak, verdict.measured_peak, str(verdict))
            self.assertLessEqual(verdict.predicted_peak, verdict.measured_peak * slack,
                                 str(verdict))
            self.assertTrue(same(expected, step(fresh, example, loss)), make.__name__)
            auto.undo()
        self.assertGreater(again, 0)
        return free

    def test_gpt(self):
        free = self.check(whole_models.gpt, shares=(0.6, 0.1))
        self.assertEqual(len(free.layers), 4)

    def test_layers_that_return_tuples(self):
        self.check(lambda: whole_models.gpt(is_tuple=True, layers=6))

    def test_the_model_returns_its_loss(self):
        self.check(whole_models.gpt_with_loss)

    def test_resnet(self):
        free = self.check(whole_models.resnet, slack=1.15)
        self.assertEqual(len(free.layers), 6)

    def test_vit(self):
        self.check(whole_models.vit)

    def test_encoder_and_decoder(self):
        free = self.check(whole_models.encoder_decoder, slack=1.1)
        self.assertEqual(len(free.layers), 6)

    def test_measured_for_real(self):
        self.check(whole_models.gpt, fake=False, repeats=1)

    def test_operations(self):
        self.check(whole_models.vit, slack=1.2, operations=True)

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.check(whole_models.vit, slack=1.15)


class Promise(unittest.TestCase):
    def test_optimizer_counts_before_its_first_step(self):
        model, example, loss = whole_models.gpt()
        optimizer = torch.optim.AdamW(model.parameters())
        bare = drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss)
        bare.undo()
        auto = drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss, optimizer=optimizer)
        weights = sum(p.numel() * 4 for p in model.parameters())
        self.assertGreaterEqual(auto.report.optimizer_bytes, 2 * weights)
        self.assertGreaterEqual(auto.peak_bytes, bare.peak_bytes + 2 * weights)

    def test_nothing_fits(self):
        model, example, loss = whole_models.gpt()
        with self.assertRaisesRegex(PlanError, "the least budget is [0-9]+, for the") as caught:
            drystone.auto_checkpoint(model, example, "1KB", loss=loss)
        least = int(str(caught.exception).split("least budget is ")[1].split(",")[0])
        self.assertIsNone(model._compiled_call_impl)
        auto = drystone.auto_checkpoint(model, example, least, loss=loss)
        self.assertLessEqual(auto.peak_bytes, least)

    def test_report(self):
        model, example, loss = whole_models.gpt()
        free = drystone.auto_checkpoint(model, example, NO_LIMIT)
        self.assertIn("recompute  nothing", str(free))
        self.assertIn("returns no loss", str(free))
        free.undo()
        auto = drystone.auto_checkpoint(model, example, free.peak_bytes * 2 // 3, loss=loss)
        self.assertIn("transformer.h.", str(auto))
        self.assertGreater(auto.report.time_added, 0)
        self.assertNotIn("returns no loss", str(auto))


class Use(unittest.TestCase):
    def tight(self, make=whole_models.gpt, **words):
        """A plan with a range of several layers."""
        model, example, loss = make()
        free = drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss, **words)
        free.undo()
        least = free.plan["min_feasible_budget"]["bytes"]
        for tenth in range(10):
            budget = least + tenth * (free.peak_bytes - least) // 10
            items = drystone.plan.plan(free.chain, budget)["items"]
            if any(item["ckpt"][1] > item["ckpt"][0] for item in items if "ckpt" in item):
                break
        else:
            self.fail("no plan has a range of several layers")
        auto = drystone.auto_checkpoint(model, example, budget, loss=loss, **words)
        return model, example, loss, auto

    def many(self, **words):
        return whole_models.gpt(layers=8, **words)

    def test_undo_and_again(self):
        model, example, loss, auto = self.tight(self.many)
        with self.assertRaisesRegex(PlanError, "has a plan already"):
            drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss)
        auto.undo()
        auto.undo()
        self.assertTrue(all(m._compiled_call_impl is None for m in model.modules()))
        with self.assertRaisesRegex(PlanError, "undone"):
            auto.verify()
        drystone.auto_checkpoint(model, example, NO_LIMIT, loss=loss).undo()

    def test_two_forwards_then_two_backwards(self):
        model, example, loss, auto = self.tight(self.many)
        model.eval()
        (loss(model(example)) + loss(model(example.flip(0)))).backward()
        seen = [p.grad.clone() for p in model.parameters()]
        auto.undo()
        model.zero_grad()
        (loss(model(example)) + loss(model(example.flip(0)))).backward()
        self.assertTrue(same(seen, [p.grad for p in model.parameters()]))

    def test_without_gradients_and_other_batches(self):
        model, example, loss, auto = self.tight(self.many)
        model.eval()
        planned = model(example[:2]).detach(), step(model, example[:1], loss)
        with torch.no_grad():
            self.assertTrue(torch.equal(model(example[:2]), planned[0]))
        auto.undo()
        self.assertTrue(torch.equal(model(example[:2]), planned[0]))
        self.assertTrue(same(step(model, example[:1], loss), planned[1]))

    def test_a_model_that_looks_is_told(self):
        model, example, loss, auto = self.tight(self.many)
        model.keeps_hidden = True
        with self.assertRaisesRegex(PlanError, "returns what layers in a range return"):
            model(example)
        model.keeps_hidden = False
        self.assertIsNotNone(step(model, example, loss))
        block = model.transformer.h[3]
        model.transformer.h[3] = nn.Identity()
        with self.assertRaises((PlanError, TypeError)):
            model(example)
        model.transformer.h[3] = block
        self.assertIsNotNone(step(model, example, loss))

    def test_hooks_run_where_the_layer_does(self):
        model, example, loss, auto = self.tight(self.many)
        seen = []
        for number, block in enumerate(model.transformer.h):
            block.register_forward_hook(lambda m, a, y, n=number: seen.append((n, y.shape)))
        model(example)
        self.assertEqual([n for n, _ in seen], list(range(8)))

    def test_state_dict_copies_and_pickles(self):
        model, example, loss, auto = self.tight(self.many)
        names = list(model.state_dict())
        twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        planned = step(model, example, loss)
        auto.undo()
        self.assertEqual(names, list(model.state_dict()))
        for twin in twins:
            self.assertTrue(same(planned, step(twin, example, loss)))

    def test_verify_changes_nothing(self):
        model, example, loss, auto = self.tight(self.many)
        step(model, example, loss)
        before = [p.grad.clone() for p in model.parameters()]
        state = torch.get_rng_state()
        auto.verify()
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assertTrue(same(before, [p.grad for p in model.parameters()]))


class Refusals(unittest.TestCase):
    def refused(self, text, model, example, **words):
        before = {name: module._compiled_call_impl for name, module in model.named_modules()}
        with self.assertRaisesRegex(PlanError, text):
            drystone.auto_checkpoint(model, example, NO_LIMIT, **words)
        self.assertEqual(before, {n: m._compiled_call_impl for n, m in model.named_modules()})

    def test_no_layers(self):
        self.refused("no list of layers is in Linear", nn.Linear(3, 3), torch.randn(2, 3))

    def test_names_that_are_not_there(self):
        model, example, loss = whole_models.gpt()
        self.refused("there is no 'model.h'", model, example, layers="model.h")
        self.refused("there is no 'transformer.h.9'", model, example, layers="transformer.h.9")
        self.refused("named twice", model, example, layers=["transformer.h", "transformer.h.1"])
        self.refused("layers has no modules", model, example, layers=[3])
        with self.assertRaisesRegex(PlanError, "grads is"):
            drystone.auto_checkpoint(model, example, NO_LIMIT, grads="late")

    def test_layers_that_are_called_twice(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

            def forward(self, x):
                return self.layers[0](self.layers[1](self.layers[0](self.layers[1](x))))

        self.refused("no layer of Twice is called once", Twice(), torch.randn(2, 3))
        self.refused("layers.0 is called 2 times", Twice(), torch.randn(2, 3), layers="layers")

    def test_a_cache_is_not_run_twice(self):
        class KeyCache:
            pass

        class Layer(nn.Linear):
            def forward(self, x, cache):
                return super().forward(x)

        class Cached(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer(3, 3), Layer(3, 3)])

            def forward(self, x):
                cache = KeyCache()
                for layer in self.layers:
                    x = layer(x, cache)
                return x

        self.refused("is given a KeyCache", Cached(), torch.randn(2, 3))

    def test_numbers_that_nobody_computes(self):
        class Asks(nn.Sequential):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x

        model, x = Asks(nn.Linear(3, 3), nn.Linear(3, 3)), torch.ones(2, 3)
        self.refused("plan with fake=False", model, x)
        drystone.auto_checkpoint(model, x, NO_LIMIT, fake=False, repeats=1).undo()

    def test_losses_that_are_none(self):
        model, example, _ = whole_models.gpt()
        self.refused("loss has to return a tensor of one element", model, example,
                     loss=lambda y: y)


if __name__ == "__main__":
    if not has_command("plan"):
        print("SKIPPED: no drystone plan")
        sys.exit(here.torch_here.SKIPPED)
    unittest.main()
