#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes keep the numbers of a program where they say so, and say why they are not made."""
import os
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

import here
import programs
from here import distance, run, run_hooked, run_patched, run_plain

NEAR = 1e-6  # float32: sums in another order


class Changed(unittest.TestCase):
    def same(self, program, changes, near=NEAR):
        result, plain = run(program, changes), run_plain(program)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(sorted(result.told["applied"]), sorted(changes), result.told)
        self.assertEqual(result.told["refused"], {})
        self.assertLess(distance(plain.kept, result.kept), near)
        return result, plain

    def refused(self, program, changes, why):
        result = run(program, changes)
        self.assertEqual([*result.told["applied"]], [])
        self.assertEqual([*result.told["refused"]], [*changes])
        self.assertRegex(result.told["refused"][[*changes][0]], why)
        return result


class Checkpoint(Changed):
    def test_same_numbers(self):
        for program in ("plain", "whole", "dicts", "dropout", "batch_norm", "careful"):
            with self.subTest(program):
                self.same(program, {"checkpoint": 4}, 1e-7)

    def test_the_first_layers(self):
        result, _ = self.same("plain", {"checkpoint": 2}, 1e-7)
        self.assertEqual(result.told["applied"]["checkpoint"], "checkpoint 2 of 4 layers")

    def test_layers_are_what_the_model_calls(self):
        for program, count, values in (("pairs", 4, 6), ("named", 2, 2), ("chained", 2, 2),
                                       ("tables", 2, 2)):
            with self.subTest(program):
                result, plain = self.same(program, {"checkpoint": count}, 1e-7)
                self.assertEqual(result.out, plain.out)
                offer = run(program, looks=True).offer("checkpoint")
                self.assertEqual(offer["values"], [*range(1, values + 1)])
                flops = [run(program, changes, looks=True).told["flops"]
                         for changes in ({}, {"checkpoint": count})]
                self.assertLess(*flops)
        self.refused("not_called", {"checkpoint": 1}, "none of its layers")

    def test_nothing_stays(self):
        for program in ("uncollected", "uncollected_careful"):
            with self.subTest(program):
                result, plain = self.same(program, {"checkpoint": 4}, 1e-7)
                counts = [[int(line.split()[1]) for line in each.out.splitlines()]
                          for each in (result, plain)]
                growth, before = ([b - a for a, b in zip(x, x[1:])] for x in counts)
                self.assertEqual(growth, before)

    def test_more_work_is_counted(self):
        flops = [run("plain", changes, looks=True).told["flops"]
                 for changes in ({}, {"checkpoint": 2}, {"checkpoint": 4})]
        self.assertLess(flops[0], flops[1])
        self.assertAlmostEqual(flops[2] - flops[1], flops[1] - flops[0])

    def test_work_is_counted_where_asked(self):
        counted, not_counted = run("hooks", looks=True), run("hooks", {"grads_to_none": True})
        self.assertEqual((counted.out, not_counted.out), ("hooks 1\n", "hooks 0\n"))
        self.assertGreater(counted.told["flops"], 0)
        self.assertIsNone(not_counted.told["flops"])

    def test_work_is_that_of_a_step(self):
        net, linear, *more = (run(name, looks=True).told["flops"] for name in (
            "plain", "no_layers", "samples", "in_a_mode", "two_nets"))
        self.assertEqual(more, [net, net, net + linear])

    def test_refused(self):
        self.refused("no_layers", {"checkpoint": 1}, "no model with layers")
        self.refused("plain", {"checkpoint": 9}, "4 layers, not 9")
        result = self.refused("in_place", {"checkpoint": 4}, "alter their inputs")
        self.assertNotEqual(result.code, 0)


class ProductsKept(Changed):
    def test_same_numbers_and_work(self):
        for program in ("plain", "whole", "dicts", "dropout", "batch_norm", "pairs", "chained"):
            with self.subTest(program):
                result, plain = self.same(program, {"products_kept": True}, 1e-7)
                self.assertEqual(result.out, plain.out)
                flops = [run(program, changes, looks=True).told["flops"]
                         for changes in ({}, {"products_kept": True})]
                self.assertEqual(*flops)

    def test_with_checkpoint(self):
        result, _ = self.same("plain", {"products_kept": True, "checkpoint": 3}, 1e-7)
        self.assertEqual(result.told["applied"], {
            "checkpoint": "checkpoint 3 of 4 layers",
            "products_kept": "recompute all but products in 1 layers"})
        self.same("plain", {"products_kept": True, "checkpoint": 4}, 1e-7)

    def test_less_is_kept(self):
        plain, less, least = (int(run("tells_kept", changes).out) for changes in (
            {}, {"products_kept": True}, {"checkpoint": 4}))
        self.assertLess(least, less)
        self.assertLess(less, plain * 0.7)

    def test_refused(self):
        self.refused("compiles", {"products_kept": True}, "compiles its model")
        self.refused("in_place", {"products_kept": True}, "alter their inputs")
        looks = run("in_place", looks=True)
        self.assertIsNone(looks.offer("products_kept"))


class MicroBatches(Changed):
    def test_same_numbers(self):
        for program in ("plain", "adam", "whole", "dicts", "nested"):
            for count in (2, 5):
                with self.subTest(program, count=count):
                    result, plain = self.same(program, {"micro_batches": count}, 1e-5)
                    self.assertEqual(result.out, plain.out)

    def test_batch_statistics_are_those_of_pieces(self):
        plain, result = run_plain("batch_norm"), run("batch_norm", {"micro_batches": 2})
        self.assertGreater(distance(plain.kept, result.kept), 1e-3)
        self.assertIn("statistics", result.told["applied"]["micro_batches"])

    def test_refused(self):
        for program, why in (("accumulates", "accumulates gradients by itself"),
                             ("no_loader", "no DataLoader"), ("one_row", "one row"),
                             ("two_steps", "more than once a batch"),
                             ("by_hand", "alters gradients"), ("sums", "is a sum")):
            with self.subTest(program):
                self.refused(program, {"micro_batches": 2}, why)
        self.refused("plain", {"micro_batches": 1}, "two pieces or more")


class Trainers(Changed):
    """Modules of others' names hold what programs.py has in their forms."""

    def test_same_numbers(self):
        for program, module, name, kind in (
                ("reads_ahead", "accelerate.data_loader", "DataLoaderShard", "Ahead"),
                ("has_arguments", "transformers.training_args", "TrainingArguments", None),
                ("has_trainer", "lightning.pytorch.trainer.trainer", "Trainer", None)):
            made = types.ModuleType(module)
            setattr(made, name, getattr(programs, kind or name))
            with self.subTest(program), unittest.mock.patch.dict(sys.modules, {module: made}):
                self.same(program, {"micro_batches": 3}, 1e-5)
                offer = run(program, looks=True).offer("micro_batches")
                self.assertEqual(offer["values"][:2], [2, 4])
                if not kind:
                    self.refused(program, {"micro_batches": 5}, "12 is not a multiple of 5")

    def test_a_loader_that_reads_ahead_is_refused(self):
        self.refused("reads_ahead", {"micro_batches": 3}, "read ahead|no DataLoader")


class Others(Changed):
    def test_loss_in_chunks(self):
        result, _ = self.same("large_losses", {"loss_in_chunks": True}, 1e-5)
        self.refused("plain", {"loss_in_chunks": True}, "16 MiB")
        self.assertEqual(run("large_losses", looks=True).offer("loss_in_chunks")["values"], [True])

    def test_foreach(self):
        result, _ = self.same("lists", {"foreach": True})
        self.assertIn("foreach False", result.out)
        self.assertEqual(run("lists", looks=True).offer("foreach")["helps"], "step")
        self.assertIsNone(run("adam", looks=True).offer("foreach"))

    def test_grads_to_none(self):
        result, plain = self.same("zeros", {"grads_to_none": True})
        self.assertEqual(plain.out.count("freed False"), 3)
        self.assertTrue(run("zeros", looks=True).offer("grads_to_none"))
        self.refused("plain", {"grads_to_none": True}, "sets no gradients to zero")

    def test_evaluation_without_graph(self):
        result, plain = self.same("evaluates", {"evaluation_without_graph": True})
        self.assertEqual(("graphs 3\n", "graphs 0\n"), (plain.out, result.out))
        self.assertTrue(run("evaluates", looks=True).offer("evaluation_without_graph"))
        looks = run("teacher", looks=True)
        self.assertIsNone(looks.offer("evaluation_without_graph"))
        self.assertIn("gradients go through", looks.told["refused"]["evaluation_without_graph"])

    def test_losses_detached(self):
        result, plain = self.same("keeps_losses", {"losses_detached": True})
        self.assertEqual(("graphs 18\n", "graphs 0\n"), (plain.out, result.out))
        self.assertTrue(run("keeps_losses", looks=True).offer("losses_detached"))
        self.assertIsNone(run("whole", looks=True).offer("losses_detached"))

    def test_offload_saved(self):
        for program in ("plain", "whole", "dropout"):
            result, _ = self.same(program, {"offload_saved": True}, 1e-7)
            self.assertGreater(result.told["link_bytes"], 10000)
        both, _ = self.same("plain", {"offload_saved": True, "checkpoint": 4}, 1e-7)
        self.assertGreater(both.told["link_bytes"], 0)

    def test_paged(self):
        with unittest.mock.patch.dict(os.environ, {"DRYSTONE_SHIM": __file__}):
            offer = run("adam", looks=True).offer("paged")
            self.assertEqual((offer["values"], offer["numbers"]), ([True], "same"))
            self.refused("adam", {"paged": True}, "does not go with PyTorch")
        with unittest.mock.patch.dict(os.environ, {"DRYSTONE_SHIM": "", "XDG_CACHE_HOME": "/no"}):
            self.assertIsNone(run("adam", looks=True).offer("paged"))

    def test_states_on_host(self):
        for program in ("adam", "adamw", "closure"):
            with self.subTest(program):
                self.same(program, {"states_on_host": True}, 1e-9)
        both = {"states_on_host": True, "micro_batches": 2}
        self.assertEqual(sorted(self.same("adam", both, 1e-5)[0].told["applied"]), sorted(both))
        self.assertTrue(run("adam", looks=True).offer("states_on_host"))
        self.refused("plain", {"states_on_host": True}, "no Adam")
        self.refused("capturable", {"states_on_host": True}, "capturable")

    def test_compile_budget(self):
        result, _ = self.same("compiles", {"compile_budget": 0.5}, 1e-5)
        self.assertIn("budget 0.5", result.out)
        self.refused("compiles", {"checkpoint": 4}, "compiles its model")
        self.refused("plain", {"compile_budget": 0.5}, "does not compile")

    def test_autocast(self):
        plain, result = run_plain("types"), run("types", {"autocast": True})
        self.assertEqual([*result.told["applied"]], ["autocast"])
        halves = plain.out.replace("logits torch.float32", "logits torch.bfloat16")
        self.assertEqual(result.out, halves)
        self.assertLess(distance(plain.kept, result.kept), 0.1)
        self.assertGreater(distance(plain.kept, result.kept), 1e-5)
        self.assertEqual(run("types", looks=True).offer("autocast")["numbers"], "other")
        for program in ("half", "casts"):
            self.refused(program, {"autocast": True}, "no model in float32")
            self.assertIsNone(run(program, looks=True).offer("autocast"))

    def test_weights_bf16(self):
        result = run("types", {"weights_bf16": True})
        self.assertEqual([*result.told["applied"]], ["weights_bf16"], result.err)
        self.assertEqual(result.out, "logits torch.bfloat16\n" * 3 +
                         "gradients torch.bfloat16 torch.float32\n")
        self.assertLess(distance(run_plain("types").kept, result.kept), 0.1)
        result = run("named_inputs", {"weights_bf16": True})
        self.assertEqual(result.out.splitlines(), ["logits torch.float32"] +
                         ["logits torch.bfloat16"] * 2 + ["states torch.bfloat16"])
        self.assertEqual(run("whole", {"weights_bf16": True}).code, 0)
        self.assertEqual(run("types", looks=True).offer("weights_bf16")["numbers"], "other")
        for program, why in (("half", "no model in float32"), ("two_ranks", "buckets")):
            self.refused(program, {"weights_bf16": True}, why)

    def test_states_sharded(self):
        plain = run_plain("two_ranks")
        result = run("two_ranks", {"states_sharded": True})
        self.assertEqual([*result.told["applied"]], ["states_sharded"], result.err)
        self.assertEqual(distance(plain.kept[-2:], result.kept[-2:]), 0)
        whole, part = (int(one.out.split()[1]) for one in (plain, result))
        self.assertLess(part, whole * 0.6)
        self.assertEqual(run("two_ranks", looks=True).offer("states_sharded")["numbers"], "same")
        self.refused("adam", {"states_sharded": True}, "several GPUs")
        self.assertIsNone(run("adam", looks=True).offer("states_sharded"))

    def test_model_sharded(self):
        plain = run_plain("two_ranks")
        for changes in ({"model_sharded": True}, {"model_sharded": True, "states_sharded": True}):
            result = run("two_ranks", changes)
            self.assertEqual(sorted(result.told["applied"]), sorted(changes), result.err)
            self.assertLess(distance(plain.kept, result.kept), NEAR)
            whole, part = (int(one.out.split()[1]) for one in (plain, result))
            self.assertLess(part, whole * 0.6)
            self.assertEqual(result.told["link_bytes"], whole // 2 * 4)
        self.assertEqual(run("two_ranks", looks=True).offer("model_sharded")["numbers"], "same")
        self.refused("optimizer_first", {"model_sharded": True}, "before Distributed")
        self.refused("adam", {"model_sharded": True}, "no DistributedDataParallel")

    def test_states_in_8_bits(self):
        self.refused("adam", {"states_8bit": "bitsandbytes"}, "not installed")
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "bitsandbytes"
            package.mkdir()
            (package / "__init__.py").touch()
            (package / "optim.py").write_text(
                "import torch\nclass AdamW8bit(torch.optim.SGD):\n"
                "    def __init__(self, params, lr): super().__init__(params, lr)\n")
            sys.path.insert(0, folder)
            try:
                result = run("adam", {"states_8bit": "bitsandbytes"})
                offer = run("adam", looks=True).offer("states_8bit")
            finally:
                sys.path.remove(folder)
        self.assertLess(distance(run_plain("plain").kept, result.kept), NEAR)
        self.assertEqual((offer["values"], offer["numbers"]), (["bitsandbytes"], "other"))


class Together(Changed):
    def test_changes_join(self):
        self.same("whole", {"checkpoint": 4, "micro_batches": 3}, 1e-5)

    def test_settings_join(self):
        result = run_hooked("settings", {"allocator": "expandable_segments:True"})
        self.assertIn("conf expandable_segments:True None", result.out, result.err)
        self.assertEqual([*result.told["applied"]], ["allocator"])

    def test_the_hook_begins(self):
        result = run_hooked("whole", {"checkpoint": 4})
        self.assertEqual(result.told["applied"], {"checkpoint": "checkpoint 4 of 4 layers"})
        self.assertLess(distance(run_plain("whole").kept, result.kept), NEAR)

    def test_torch_may_be_looked_for_before(self):
        result = run_hooked("settings", {"allocator": "expandable_segments:True"},
                            "import importlib.util as u; assert u.find_spec('torch')")
        self.assertEqual([*result.told["applied"]], ["allocator"], result.err)
        result = run_hooked("plain", {"checkpoint": 4},
                            "import importlib.util as u; print(u.find_spec('torch').name)")
        self.assertEqual([*result.told["applied"]], ["checkpoint"], result.err)

    def test_a_program_applies_them(self):
        result = run_patched("whole", {"checkpoint": 4, "micro_batches": 2}, {"checkpoint": 3})
        self.assertEqual(result.told["applied"]["checkpoint"], "checkpoint 3 of 4 layers")
        self.assertEqual(len(result.told["applied"]), 2, result.err)
        self.assertLess(distance(run_plain("whole").kept, result.kept), 1e-5)
        with self.assertRaisesRegex(RuntimeError, "before PyTorch"):
            here.fit.apply({"checkpoint": 4})

    def test_an_unknown_name_is_refused(self):
        self.refused("settings", {"chekpoint": 4}, "no such change; there are allocator, ")


class Looks(unittest.TestCase):
    def test_nothing_is_altered(self):
        for program in ("plain", "whole", "nested", "accumulates", "two_steps", "by_hand",
                        "batch_norm", "in_place", "no_loader", "zeros", "lists", "evaluates",
                        "teacher", "keeps_losses", "two_ranks"):
            with self.subTest(program):
                plain, result = run_plain(program), run(program, looks=True)
                self.assertEqual(distance(plain.kept, result.kept), 0)
                self.assertEqual((result.out, result.told["applied"]), (plain.out, {}))
                self.assertEqual(result.told["notes"], [])

    def test_what_helps_is_offered(self):
        result = run("plain", looks=True)
        offer = result.offer("checkpoint")
        self.assertEqual((offer["values"], offer["text"], offer["numbers"], offer["helps"]),
                         ([1, 2, 3, 4], "checkpoint {} of 4 layers", "same", "backward"))
        self.assertEqual(result.offer("micro_batches")["values"], [2, 4, 8])
        self.assertEqual(result.offer("allocator")["values"], ["expandable_segments:True"])
        self.assertEqual(result.offer("micro_batches")["numbers"], "rows")

    def test_what_does_not_is_not(self):
        for program, name in (("accumulates", "micro_batches"), ("two_steps", "micro_batches"),
                              ("in_place", "checkpoint"), ("no_layers", "checkpoint"),
                              ("one_row", "micro_batches"), ("sums", "micro_batches")):
            with self.subTest(program):
                result = run(program, looks=True)
                self.assertIsNone(result.offer(name))
                self.assertTrue(result.told["refused"][name])
        for program, why in (("no_loader", "no DataLoader"), ("one_row", "one row")):
            self.assertRegex(run(program, looks=True).told["refused"]["micro_batches"], why)
        self.assertEqual(run("plain", looks=True).told["refused"], {})


if __name__ == "__main__":
    here.main()
