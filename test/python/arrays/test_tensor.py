#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors by the library alone: arguments, pages, refusals, files, fork, threads, lifetimes."""
import copy
import ctypes
import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import here

import drystone


def bytes_at(tensor, count):
    return (ctypes.c_uint8 * count).from_address(tensor.data_ptr)


def said(case, kind, *args, **words):
    """Return the text with which empty() refuses; the text is one line."""
    with case.assertRaises(kind) as caught:
        drystone.empty(*args, **words)
    case.assertNotIn("\n", str(caught.exception))
    return str(caught.exception)


class Arguments(unittest.TestCase):
    def test_a_tensor_tells_its_form(self):
        t = drystone.zeros((2, 3, 5), "float64")
        self.assertEqual((t.shape, t.strides, t.ndim, t.size, t.nbytes, t.dtype, len(t)),
                         ((2, 3, 5), (15, 5, 1), 3, 30, 240, "float64", 2))
        self.assertEqual(t.data_ptr % 256, 0)
        self.assertIn("float64", repr(t))
        self.assertEqual(drystone.empty(7).shape, (7,))
        self.assertEqual(drystone.empty(()).size, 1)
        with self.assertRaises(TypeError):
            len(drystone.empty(()))

    def test_without_elements_there_is_no_memory(self):
        t = drystone.empty((3, 0, 2))
        self.assertEqual((t.data_ptr, t.nbytes, t.pages), (0, 0, None))
        with self.assertRaises(drystone.Error):
            t.proof()

    def test_shapes_that_cannot_be(self):
        self.assertIn("-1 is not from 0", said(self, ValueError, (4, -1)))
        self.assertIn("is not from 0", said(self, ValueError, (2 ** 64,)))
        self.assertIn("bytes", said(self, ValueError, (2 ** 40, 2 ** 40)))
        self.assertIn("0 to 64", said(self, ValueError, (1,) * 65))
        self.assertIn("whole numbers", said(self, ValueError, 1.5))
        self.assertIn("whole numbers", said(self, ValueError, ("3",)))
        self.assertIn("whole numbers", said(self, ValueError, None))

    def test_dtypes(self):
        for name in ("bfloat16", "torch.bfloat16", "bf16", "float8_e4m3fn", "float8_e5m2",
                     "bool", "complex64", "float4_e2m1fn_x2"):
            self.assertGreater(drystone.empty(8, name).nbytes, 0)
        self.assertEqual(drystone.empty(8, "float4_e2m1fn_x2").nbytes, 8)
        self.assertEqual(drystone.empty(3, "half").dtype, "float16")
        self.assertEqual(drystone.empty(3, bool).dtype, "bool")
        for wrong in ("float31", "", "float", float, None, 7, "\0", "x" * 999):
            self.assertIn("is no dtype", said(self, ValueError, 3, wrong))

    def test_words_that_mean_nothing(self):
        self.assertIn("'2M' or '1G'", said(self, ValueError, 3, pages="2X"))
        self.assertIn("'2M' or '1G'", said(self, ValueError, 3, pages=""))
        self.assertIn("'2M' or '1G'", said(self, ValueError, 3, pages=("2M",)))
        self.assertIn("power of two", said(self, ValueError, 3, pages="3M"))
        self.assertIn("'interleave'", said(self, ValueError, 3, node="left"))
        self.assertIn("'interleave'", said(self, ValueError, 3, node=-1))
        self.assertIn("'interleave'", said(self, ValueError, 3, node=()))
        self.assertIn("'share'", said(self, ValueError, 3, fork="maybe"))
        self.assertIn("'share' or 'none'", said(self, ValueError, 3, fork="copy", pages="2M"))
        self.assertIn("'anywhere'", said(self, ValueError, 3, fallback="somewhere"))
        self.assertIn("'lock'", said(self, ValueError, 3, pinned="maybe"))
        self.assertIn("on one node", said(self, ValueError, 3, pinned="lock", node=(0, 1)))
        self.assertIn("'none' alone", said(self, ValueError, 3, pinned="lock", fork="share"))

    def test_a_node_that_is_not_there(self):
        self.assertIn("no such node", said(self, drystone.Error, 3, pages="normal", node=1000))
        self.assertIsNotNone(drystone.empty(3, node=0).pages)
        self.assertIsNotNone(drystone.empty(3, node=[0]).pages)
        self.assertIsNotNone(drystone.empty(3, node="interleave").pages)


class Pages(unittest.TestCase):
    def test_base_pages_are_there(self):
        t = drystone.zeros(3 << 20, "uint8", pages="normal", node=0)
        self.assertEqual((t.pages.kind, t.pages.bytes), ("base", 3 << 20))
        proof = t.proof()
        self.assertEqual(proof.populated_bytes, 3 << 20)
        self.assertEqual(proof.elsewhere_bytes, 0)

    def test_a_pool_that_is_too_small_is_refused_with_its_command(self):
        count = here.free_pages_of_pool() + 2
        with self.assertRaises(drystone.Error) as caught:
            drystone.empty(count << 21, "uint8", pages="2M")
        text = str(caught.exception)
        if "no pages of this size" in text:
            self.skipTest("this kernel has no pages of 2 MiB")
        self.assertIsInstance(caught.exception, MemoryError)
        self.assertIn(f"{count} needed", text)
        self.assertIn("nr_hugepages", text)
        self.assertIn("drystone pages", text)

    def test_other_pages_are_taken_only_if_asked_for(self):
        count = here.free_pages_of_pool() + 2
        t = drystone.empty(count << 21, "uint8", pages="2M", fallback=True)
        self.assertNotEqual(t.pages.kind, "pool")
        self.assertIn("pool pages", t.refusal)
        self.assertEqual(here.run_child(lambda: bytes_at(t, 1)[0]), 0)
        self.assertIsNone(drystone.empty(3).refusal)

    def test_pages_of_a_pool(self):
        if here.free_pages_of_pool() < 2:
            self.skipTest("no free pages of 2 MiB: echo 2 >/proc/sys/vm/nr_hugepages")
        t = drystone.zeros((1 << 20) + 1, "float32", pages="2M")
        self.assertEqual((t.pages.kind, t.pages.page_bytes, t.pages.bytes),
                         ("pool", 2 << 20, 6 << 20))
        self.assertEqual(t.proof().huge_bytes, 6 << 20)

        def write():
            bytes_at(t, 1)[0] = 5
        self.assertEqual(here.run_child(write), 0)
        self.assertEqual(bytes_at(t, 1)[0], 5)
        before = here.free_pages_of_pool()
        del t
        gc.collect()
        self.assertEqual(here.free_pages_of_pool(), before + 3)


class Fork(unittest.TestCase):
    def child_of(self, fork):
        """Return (what a child reads, what the parent reads after the child wrote)."""
        t = drystone.zeros(4096, "uint8", pages="normal", fork=fork)
        bytes_at(t, 1)[0] = 7

        def work():
            seen = bytes_at(t, 1)[0]
            bytes_at(t, 1)[0] = 9
            return seen
        return here.run_child(work), bytes_at(t, 1)[0]

    def test_each_behaviour(self):
        self.assertEqual(self.child_of(None), (7, 7))
        self.assertEqual(self.child_of("copy"), (7, 7))
        self.assertEqual(self.child_of("share"), (7, 9))
        self.assertEqual(self.child_of("zero"), (0, 7))
        self.assertEqual(self.child_of("none"), (-signal.SIGSEGV, 7))

    def test_a_child_has_no_pinned_memory(self):
        t = drystone.zeros(4096, "uint8", pinned="lock")
        self.assertEqual(here.run_child(lambda: bytes_at(t, 1)[0]), -signal.SIGSEGV)

    def test_a_child_that_drops_a_tensor_leaves_the_parents(self):
        for fork in ("copy", "share", "none"):
            held = [drystone.zeros(4096, "uint8", pages="normal", fork=fork)]
            address = held[0].data_ptr

            def work(held=held):
                held.clear()
                gc.collect()
            self.assertEqual(here.run_child(work), 0)
            self.assertTrue(here.is_mapped(address))


class Lifetimes(unittest.TestCase):
    def test_the_last_view_gives_the_memory_back(self):
        t = drystone.zeros(1 << 20, "uint8", pages="normal")
        address = t.data_ptr
        part = t.view(16, "uint8", 4096)
        del t
        gc.collect()
        self.assertTrue(here.is_mapped(address))
        self.assertEqual(bytes_at(part, 16)[15], 0)
        del part
        gc.collect()
        self.assertFalse(here.is_mapped(address))

    def test_copies_and_pickles(self):
        t = drystone.zeros(64, "uint8", pages="normal")
        other = copy.deepcopy(t)
        bytes_at(other, 1)[0] = 5
        self.assertEqual((bytes_at(t, 1)[0], other.pages.kind), (0, "base"))
        with self.assertRaises(TypeError) as caught:
            pickle.dumps(t)
        self.assertIn("numpy()", str(caught.exception))

    def test_parts_that_cannot_be(self):
        t = drystone.zeros(1024, "uint8")
        self.assertEqual(t.view((2, 64), "float32", 512).nbytes, 512)
        self.assertEqual(t.view(4, offset=256).view(4).data_ptr, t.data_ptr + 256)
        for shape, offset in ((1025, 0), (1, 1), (1, -256), (1024, 256)):
            with self.assertRaises(ValueError):
                t.view(shape, offset=offset)

    def test_capsules_that_nobody_takes(self):
        t = drystone.zeros(1 << 20, "uint8", pages="normal")
        address = t.data_ptr
        held = [t.__dlpack__(), t.__dlpack__(max_version=(1, 0))]
        del t
        gc.collect()
        self.assertTrue(here.is_mapped(address))
        held.clear()
        self.assertFalse(here.is_mapped(address))

    def test_a_capsule_dropped_by_an_exception_keeps_the_exception(self):
        t = drystone.zeros(1 << 20, "uint8", pages="normal")
        address = t.data_ptr
        with self.assertRaises(TypeError):
            ctypes.pythonapi.PyUnicode_AsUTF8String(ctypes.py_object(t.__dlpack__()))
        del t
        gc.collect()
        self.assertFalse(here.is_mapped(address))

    def test_a_hundred_thousand_tensors(self):
        def many(count):
            for _ in range(count):
                t = drystone.empty(16, "uint8", pages="normal")
                t.__dlpack__(max_version=(1, 0))
        many(200)
        before = here.memory_bytes()
        for _ in range(4):
            threads = [threading.Thread(target=many, args=(12500,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        # Threads may have taken arenas of malloc's; a leak would be 400 MB of pages at least.
        self.assertLess(here.memory_bytes() - before, 256 << 20)

    def test_the_interpreter_may_end_with_tensors_alive(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "import drystone, threading\n"
                   "kept = [drystone.zeros(9), drystone.zeros(9, pinned='lock')]\n"
                   "caps = [t.__dlpack__() for t in kept]\n"
                   "class Late:\n"
                   "    def __init__(self): self.t = drystone.zeros(5); self.c = "
                   "self.t.__dlpack__(max_version=(1, 0))\n"
                   "    def __del__(self): del self.c; del self.t\n"
                   "drystone.late = Late()\n"
                   "runs = threading.Event()\n"
                   "def forever():\n"
                   "    while True: drystone.empty(5); runs.set()\n"
                   "threading.Thread(target=forever, daemon=True).start()\n"
                   "runs.wait()\n")
        done = subprocess.run([sys.executable, "-c", program, str(here.ROOT / "python")],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Pinned(unittest.TestCase):
    def test_locked_memory(self):
        t = drystone.zeros((64, 1024), "float32", pinned="lock")
        self.assertTrue(t.is_pinned)
        self.assertIn("pinned", repr(t))
        self.assertFalse(any(bytes_at(t, t.nbytes)))
        address = t.data_ptr
        bytes_at(t, 1)[0] = 1
        del t
        gc.collect()
        again = drystone.zeros((64, 1024), "float32", pinned="lock")  # zeroed though used before
        self.assertEqual((again.data_ptr, bytes_at(again, 1)[0]), (address, 0))
        with self.assertRaises(drystone.Error):
            again.proof()

    def test_pages_of_a_pool_that_are_missing_are_named(self):
        count = here.free_pages_of_pool() + 2
        with self.assertRaises(MemoryError) as caught:
            drystone.empty(count << 21, "uint8", pages="2M", pinned="lock")
        self.assertIn("nr_hugepages", str(caught.exception))

    def test_exports_of_locked_memory(self):
        t = drystone.empty(8, pinned="lock")
        self.assertEqual(t.__dlpack_device__(), (1, 0))
        t.__dlpack__(dl_device=(3, 0))
        t.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        for device in ((2, 0), (3, 1)):
            with self.assertRaises(BufferError):
                t.__dlpack__(dl_device=device)
        with self.assertRaises(BufferError):
            drystone.empty(8).__dlpack__(dl_device=(3, 0))
        with self.assertRaises(BufferError):
            t.__dlpack__(stream=1)
        with self.assertRaises(ValueError):
            drystone.empty(8).record_stream(0)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "weights.bin"
        self.path.write_bytes(bytes(range(256)) * 16)

    def refused(self, *args, **words):
        with self.assertRaises(ValueError) as caught:
            drystone.from_file(self.path, *args, **words)
        return str(caught.exception)

    def test_a_file_is_read(self):
        t = drystone.from_file(self.path)
        self.assertEqual((t.shape, bytes(bytes_at(t, 4096))),
                         ((4096,), self.path.read_bytes()))
        t = drystone.from_file(self.path, "int16", (3, 5), offset=7, pages="normal")
        self.assertEqual(bytes(bytes_at(t, 30)), bytes(range(7, 37)))
        self.assertEqual(drystone.from_file(self.path, "float32", offset=4096).shape, (0,))

    def test_a_large_file_is_read_by_threads(self):
        with open(self.path, "r+b") as file:
            file.truncate(200 << 20)
            file.seek((200 << 20) - 5)
            file.write(b"12345")
        t = drystone.from_file(self.path)
        self.assertEqual(bytes(bytes_at(t, 300))[:256], bytes(range(256)))
        self.assertEqual(bytes((ctypes.c_uint8 * 5).from_address(
            t.data_ptr + (200 << 20) - 5)), b"12345")

    def test_files_that_do_not_fit(self):
        self.assertIn("no whole number of float32", self.refused("float32", offset=1))
        self.assertIn("8192 bytes are wanted", self.refused("float32", (2048,)))
        self.assertIn("not within", self.refused(offset=4097))
        self.assertIn("not within", self.refused(offset=-1))
        with self.assertRaises(FileNotFoundError):
            drystone.from_file(self.path.parent / "nothing")
        with self.assertRaises(ValueError):
            drystone.from_file(self.path.parent)
        with self.assertRaises(ValueError):
            drystone.from_file("/dev/zero")


class Library(unittest.TestCase):
    def test_without_the_library_the_text_says_so(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\nimport drystone\n"
                   "try: drystone.empty(3)\n"
                   "except drystone.Error as why: print(why)\n")
        environment = dict(os.environ, DRYSTONE_LIBRARY="/nowhere/libdrystone.so")
        done = subprocess.run([sys.executable, "-c", program, str(here.ROOT / "python")],
                              env=environment, capture_output=True, text=True, check=False)
        self.assertIn("DRYSTONE_LIBRARY", done.stdout)
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    here.main()
