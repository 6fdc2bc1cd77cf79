#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors in JAX: the same memory, for as long as any array shows it."""
import gc
import unittest

import here

jax = here.need("jax")
from jax import numpy as jnp

import drystone


class Jax(unittest.TestCase):
    def test_the_memory_is_the_same_and_goes_back(self):
        t = drystone.zeros((64, 1024), "float32", pages="normal")
        t.numpy()[1, 2] = 7
        address = t.data_ptr
        array = jnp.from_dlpack(t)
        self.assertEqual((array.shape, float(array[1, 2])), ((64, 1024), 7.0))
        self.assertEqual(array.unsafe_buffer_pointer(), address)
        del t
        gc.collect()
        self.assertTrue(here.is_mapped(address))
        self.assertEqual(float(jax.jit(jnp.sum)(array)), 7.0)
        del array
        jax.clear_caches()
        gc.collect()
        self.assertFalse(here.is_mapped(address))

    def test_dtypes(self):
        for name in "int8 int32 uint8 float16 bfloat16 float32 complex64 float8_e4m3fn".split():
            t = drystone.zeros(4, getattr(jnp, name))
            self.assertEqual(t.dtype, name)
            self.assertEqual(str(jnp.from_dlpack(t).dtype), name)

    def test_shapes(self):
        for shape in ((), (3, 1, 5)):
            self.assertEqual(jnp.from_dlpack(drystone.zeros(shape)).shape, shape)


if __name__ == "__main__":
    here.main()
