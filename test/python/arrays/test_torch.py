#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors in PyTorch: the same memory, for as long as any tensor shows it."""
import gc
import multiprocessing
import threading
import unittest

import here

torch = here.need("torch")

import drystone


class Torch(unittest.TestCase):
    def test_the_memory_is_the_same(self):
        t = drystone.zeros((3, 4), "float32")
        theirs = torch.from_dlpack(t)
        self.assertEqual((tuple(theirs.shape), theirs.dtype, theirs.data_ptr()),
                         ((3, 4), torch.float32, t.data_ptr))
        theirs[1, 2] = 7
        self.assertEqual(t.torch()[1, 2], 7)
        self.assertEqual(theirs.untyped_storage().nbytes(), 48)

    def test_the_last_view_gives_the_memory_back_in_its_thread(self):
        t = drystone.zeros((512, 1024), "uint8", pages="normal")
        address = t.data_ptr
        held = [torch.from_dlpack(t)[100:, ::2].t()[3:]]
        del t
        gc.collect()
        self.assertTrue(here.is_mapped(address))
        self.assertEqual(int(held[0].sum()), 0)
        thread = threading.Thread(target=lambda: (held.clear(), gc.collect()))
        thread.start()
        thread.join()
        self.assertFalse(here.is_mapped(address))

    def test_autograd_keeps_the_memory(self):
        t = drystone.zeros((256, 64), "float32", pages="normal")
        address = t.data_ptr
        weight = torch.from_dlpack(t).requires_grad_()
        loss = (weight * 2).exp().sum()
        del t, weight
        gc.collect()
        loss.backward()
        self.assertTrue(here.is_mapped(address))
        del loss
        gc.collect()
        self.assertFalse(here.is_mapped(address))

    def test_dtypes(self):
        names = ("bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64 complex64 "
                 "complex128 float8_e4m3fn float8_e5m2 float8_e8m0fnu").split()
        seen = 0
        for name in names:
            theirs = getattr(torch, name, None)
            if theirs is None:
                continue
            t = drystone.zeros(4, theirs)
            self.assertEqual(t.dtype, name)
            try:
                self.assertEqual(torch.from_dlpack(t).dtype, theirs)
                seen += 1
            except (BufferError, RuntimeError):
                self.assertIn("float8", name)  # before 2.9 these have no DLPack in PyTorch
        self.assertGreaterEqual(seen, 12)

    def test_shapes(self):
        for shape in ((), (0,), (2, 0, 3), (1,) * 12):
            self.assertEqual(tuple(drystone.zeros(shape).torch().shape), shape)

    def test_parameters_of_a_module(self):
        layer = torch.nn.Linear(64, 32)
        t = drystone.empty((32, 64), "float32")
        with torch.no_grad():
            theirs = t.torch().copy_(layer.weight)
        layer.weight = torch.nn.Parameter(theirs)
        self.assertEqual(layer.weight.data_ptr(), t.data_ptr)
        layer(torch.ones(2, 64)).sum().backward()
        torch.optim.SGD(layer.parameters(), 0.1).step()
        self.assertEqual(layer.weight.data_ptr(), t.data_ptr)

    def test_workers_of_a_loader_see_the_data(self):
        data = drystone.zeros((64, 8), "float32").torch()
        data += 3
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(data), batch_size=16, num_workers=2,
            multiprocessing_context=multiprocessing.get_context("fork"))
        self.assertEqual(sum(float(batch.sum()) for batch, in loader), 3 * 64 * 8)

    def test_copies_of_many_shapes_lose_nothing(self):
        for _ in range(200):
            t = drystone.empty(16, "uint8", pages="normal")
            views = [torch.from_dlpack(t) for _ in range(50)]
            address = t.data_ptr
            del t, views
        gc.collect()
        self.assertFalse(here.is_mapped(address))


if __name__ == "__main__":
    here.main()
