#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors in NumPy: the same memory, for as long as any array shows it."""
import gc
import tempfile
import threading
import unittest

import here

numpy = here.need("numpy")

import drystone

HAS_VERSIONS = tuple(int(n) for n in numpy.__version__.split(".")[:2]) >= (2, 1)
WAYS = {"asarray": numpy.asarray, "numpy": lambda t: t.numpy()}
if hasattr(numpy, "from_dlpack"):
    WAYS["from_dlpack"] = numpy.from_dlpack


class NumPy(unittest.TestCase):
    def test_the_memory_is_the_same(self):
        for name, way in WAYS.items():
            with self.subTest(name):
                t = drystone.zeros((3, 4), "float32")
                array = way(t)
                self.assertEqual((array.shape, str(array.dtype), array.ctypes.data),
                                 ((3, 4), "float32", t.data_ptr))
                self.assertEqual(array.strides, (16, 4))
                if name != "from_dlpack" or HAS_VERSIONS:
                    array[1, 2] = 7
                    self.assertEqual(numpy.asarray(t)[1, 2], 7)

    def test_the_last_slice_gives_the_memory_back_in_its_thread(self):
        for name, way in WAYS.items():
            with self.subTest(name):
                t = drystone.zeros((512, 1024), "uint8", pages="normal")
                address = t.data_ptr
                array = way(t)
                held = [array[100:, ::2].T[3:]]
                del t, array
                gc.collect()
                self.assertTrue(here.is_mapped(address))
                self.assertEqual(int(held[0].sum()), 0)
                thread = threading.Thread(target=lambda held=held: (held.clear(), gc.collect()))
                thread.start()
                thread.join()
                self.assertFalse(here.is_mapped(address))

    def test_every_dtype_of_numpys(self):
        for name in ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 "
                     "float64 complex64 complex128").split():
            t = drystone.zeros(3, name)
            self.assertEqual(str(numpy.asarray(t).dtype), name)
            self.assertEqual(drystone.empty(3, numpy.dtype(name)).dtype, name)
            self.assertEqual(drystone.empty(3, getattr(numpy, name, "bool")).dtype, name)

    def test_dtypes_of_others(self):
        try:
            import ml_dtypes
        except ImportError:
            with self.assertRaises(ValueError) as caught:
                drystone.zeros(3, "bfloat16").numpy()
            self.assertIn("ml_dtypes", str(caught.exception))
            return
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"):
            t = drystone.zeros((2, 3), name)
            array = numpy.asarray(t)
            self.assertEqual((array.dtype, array.shape), (getattr(ml_dtypes, name), (2, 3)))
            array[0, 1] = 1
            self.assertEqual(float(t.numpy()[0, 1]), 1)
            self.assertEqual(drystone.empty(3, array.dtype).dtype, name)
        with self.assertRaises(ValueError):
            drystone.zeros(4, "float4_e2m1fn_x2").numpy()

    def test_shapes(self):
        for shape in ((), (0,), (2, 0, 3), (1,) * 12, (5, 1, 7)):
            for way in WAYS.values():
                self.assertEqual(way(drystone.zeros(shape, "int32")).shape, shape)
        with self.assertRaises(ValueError):
            drystone.zeros(numpy.array([2, -3]))
        self.assertEqual(drystone.zeros(numpy.array([2, 3])).shape, (2, 3))

    def test_copies_when_asked_for(self):
        t = drystone.zeros(4)
        array = t.__array__(copy=True)
        array[0] = 1
        self.assertEqual(t.numpy()[0], 0)
        self.assertEqual(numpy.asarray(t, "float64").dtype, "float64")
        with self.assertRaises(ValueError):
            t.__array__("float64", copy=False)
        if HAS_VERSIONS:
            array = numpy.from_dlpack(t, copy=True)
            array[0] = 1
            self.assertEqual((t.numpy()[0], array.flags.writeable), (0, True))

    def test_a_refusal_by_numpy_loses_nothing(self):
        if "from_dlpack" not in WAYS:
            self.skipTest("this NumPy has no from_dlpack")
        t = drystone.zeros(1 << 20, "bfloat16", pages="normal")
        address = t.data_ptr
        with self.assertRaises((BufferError, RuntimeError)):
            numpy.from_dlpack(t)
        del t
        gc.collect()
        self.assertFalse(here.is_mapped(address))

    def test_a_child_has_the_array(self):
        array = numpy.asarray(drystone.zeros(1000, "int64"))
        array[:] = 5
        self.assertEqual(here.run_child(lambda: int(array.sum()) != 5000), 0)

    def test_a_file_is_an_array(self):
        array = numpy.arange(1000, dtype="float32").reshape(10, 100)
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            numpy.save(file.name, array)
            t = drystone.from_file(file.name, "float32", (10, 100), offset=128)
        self.assertTrue((numpy.asarray(t) == array).all())


if __name__ == "__main__":
    here.main()
