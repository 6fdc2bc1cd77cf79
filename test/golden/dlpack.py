#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors of ours in NumPy and PyTorch: dlpack.py LIBDRYSTONE.so

Whatever of them is installed, or can be imported from the folder $DRY_TEST_PYTHON, consumes
capsules that are made here of exported tensors: what it then has is compared, and when it lets
go the memory must go back, once, in the thread that let go. Skipped where there is neither.
"""
import ctypes
import gc
import importlib
import os
import subprocess
import sys
import threading

if os.environ.get("DRY_TEST_PYTHON"):
    sys.path.insert(0, os.environ["DRY_TEST_PYTHON"])

CPU, CUDA_HOST = 1, 3
LEAVE = "DRY_TEST_DLPACK_LEAVE"


class Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class Form(ctypes.Structure):
    _fields_ = [("dtype", Dtype), ("ndim", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("is_padded", ctypes.c_bool)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("form", Form), ("device", ctypes.c_int32 * 2), ("pages", ctypes.c_void_p)]


class View(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("is_read_only", ctypes.c_bool),
                ("is_part", ctypes.c_bool), ("offset_bytes", ctypes.c_uint64),
                ("form", Form)]


class Memory(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_uint64),
                ("release", ctypes.c_void_p), ("self", ctypes.c_void_p)]


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Where the deleter stands: {version, context, deleter ...} and {tensor, context, deleter}.
FORMS = {b"dltensor_versioned": ("dry_tensor_export", 16),
         b"dltensor": ("dry_tensor_export_legacy", 56)}

library = ctypes.CDLL(sys.argv[1])
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


def require(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def drop_capsule(capsule):
    """Nobody consumed it, or its name would be another."""
    for name, (_, at) in FORMS.items():
        if python.PyCapsule_IsValid(capsule, name):
            managed = python.PyCapsule_GetPointer(capsule, name)
            DELETER(ctypes.c_void_p.from_address(managed + at).value)(managed)


drop = DESTRUCTOR(drop_capsule)


def parse(name):
    dtype = Dtype()
    require(library.dry_dtype_parse(name.encode(), ctypes.byref(dtype), None) == 0, name)
    return dtype


class Tensor:
    """Of ours; `released` has the threads in which its memory went back."""

    def __init__(self, name, shape, is_wrapped=True, device=CPU, is_read_only=False):
        self.released = []
        self.is_read_only = is_read_only
        self.device = device
        self.name = None
        numbers = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        options = Options()
        library.dry_tensor_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        require(options.struct_size == ctypes.sizeof(options), "the layout of options")
        options.form = Form(parse(name), len(shape), numbers, 0)
        options.device[0] = device
        self.tensor = ctypes.c_void_p()
        if is_wrapped:
            status = self.wrap(options)
        else:
            status = library.dry_tensor_create(ctypes.byref(options),
                                               ctypes.byref(self.tensor), None, None)
        require(status == 0, f"a tensor of {name} {shape}: {status}")

    def wrap(self, options):
        count = ctypes.c_uint64()
        require(library.dry_tensor_measure(ctypes.byref(options.form), ctypes.byref(count),
                                           None) == 0, "measure")
        self.block = (ctypes.c_uint8 * (count.value + 256))()
        self.at = -ctypes.addressof(self.block) % 256
        released = self.released
        self.release = RELEASE(lambda _: released.append(threading.get_ident()))
        memory = Memory(ctypes.addressof(self.block) + self.at, count.value,
                        ctypes.cast(self.release, ctypes.c_void_p), None)
        return library.dry_tensor_wrap(ctypes.byref(options), ctypes.byref(memory),
                                       ctypes.byref(self.tensor), None)

    def capsule(self, name):
        managed, view = ctypes.c_void_p(), View()
        library.dry_tensor_view_init_sized(ctypes.byref(view), ctypes.sizeof(view))
        view.is_read_only = self.is_read_only
        status = getattr(library, FORMS[name][0])(self.tensor, ctypes.byref(view),
                                                  ctypes.byref(managed), None)
        require(status == 0, f"export {name}: {status}")
        self.name = name
        return python.PyCapsule_New(managed, name, drop)

    def let_go(self):
        library.dry_tensor_destroy(self.tensor)
        self.tensor = None


class Producer:
    """As the protocol of Python has it: legacy unless a version is asked for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        is_new = max_version is not None and max_version[0] >= 1
        return self.tensor.capsule(b"dltensor_versioned" if is_new else b"dltensor")

    def __dlpack_device__(self):
        return (self.tensor.device, 0)


class OldProducer(Producer):
    def __dlpack__(self, stream=None):
        return self.tensor.capsule(b"dltensor")


def check_life(module, producer):
    """A view of a view has the memory; whoever drops it last gives it back, there."""
    ours = Tensor("float32", [3, 4])
    data = (ctypes.c_float * 12).from_buffer(ours.block, ours.at)
    data[:] = [float(i) for i in range(12)]
    array = module.from_dlpack(producer(ours))
    ours.let_go()
    require(array.tolist() == [[4 * i + j for j in range(4)] for i in range(3)], "values")
    data[6] = 77  # NumPy takes what is of before 1.0 for read-only
    require(float(array[1, 2]) == 77, "it is a copy")
    holder = [array[1:, ::2]]
    del array
    gc.collect()
    require(not ours.released and holder[0].tolist() == [[4, 77], [8, 10]], "a view")
    thread = threading.Thread(target=lambda: (holder.clear(), gc.collect()))
    thread.start()
    ident = thread.ident
    thread.join()
    require(ours.released == [ident], f"released in {ours.released}, not once in {ident}")
    return ours.name.decode()


def is_mapped(address):
    with open("/proc/self/maps") as maps:
        return any(int(line.split("-")[0], 16) <= address <
                   int(line.split("-")[1].split()[0], 16) for line in maps)


def address_of(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data


def check_pages(module):
    """A region with addresses without access around it: nobody else's mapping is there."""
    ours = Tensor("int64", [1 << 18], is_wrapped=False)
    array = module.from_dlpack(Producer(ours))
    ours.let_go()
    address = address_of(array)
    require(address % 256 == 0 and is_mapped(address), "the address")
    require(not array.any(), "zeroes")
    ctypes.memset(address, 5, 8 << 18)
    require(bool((array == 0x0505050505050505).all()), "fives")
    del array
    gc.collect()
    require(not is_mapped(address), "pages that were not given back")


def leave(module):
    """Ends with our memory in the module's hands."""
    module.kept_to_the_end = [
        module.from_dlpack(producer(Tensor("float32", [1 << 20], is_wrapped=False)))
        for producer in (Producer, OldProducer)]


def check_exit(name):
    """Deleters that run while the interpreter ends, or when there is none any more."""
    done = subprocess.run([sys.executable] + sys.argv, env=dict(os.environ, **{LEAVE: name}),
                          capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"{name} at the end: {done.returncode} {done.stderr}")


def check_forms(module):
    """Without elements, without dimensions, of many; and one that nobody consumed."""
    for shape in ([], [0], [2, 0, 3], [1] * 12, [5, 1, 7]):
        ours = Tensor("int32", shape)
        array = module.from_dlpack(Producer(ours))
        require(list(array.shape) == shape, f"shape {shape}")
        ours.let_go()
        del array
        gc.collect()
        # PyTorch 1.13 calls no deleter where data is NULL; all it leaks is a record.
        is_leaked = 0 in shape and module.__version__.startswith("1.13")
        require(len(ours.released) == 1 or is_leaked, f"release of {shape}")
    for name in FORMS:
        ours = Tensor("int8", [3])
        capsule = ours.capsule(name)
        ours.let_go()
        require(not ours.released, "released under a capsule")
        del capsule
        require(len(ours.released) == 1, "a capsule that was dropped")


def check_dtypes(module, names):
    known = []
    for name in names:
        theirs = vars(module).get(name)
        if theirs is None:
            continue
        ours = Tensor(name, [4, 2])
        try:
            array = module.from_dlpack(Producer(ours))
        except (RuntimeError, BufferError):
            array = None  # it has the dtype, but not for exchange
        if array is not None:
            require(array.dtype == theirs, f"{name} became {array.dtype}")
            width = array.element_size() if hasattr(array, "element_size") else array.itemsize
            require(width == parse(name).bits // 8, f"the width of {name}")
            known.append(name)
        ours.let_go()
        del array
        gc.collect()
        require(len(ours.released) == 1, f"release of {name}")
    require({"float32", "int8", "uint8", "int64"} <= set(known), f"only {known}")
    return known


def check_numpy(numpy):
    if tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1):
        array = numpy.from_dlpack(Producer(Tensor("uint8", [4], is_read_only=True)))
        require(not array.flags.writeable, "read-only became writable")


def check_cuda_host(module):
    """Not every consumer takes it; the memory goes back either way."""
    ours = Tensor("uint8", [4], device=CUDA_HOST)
    try:
        array, does = module.from_dlpack(Producer(ours)), "takes"
    except (RuntimeError, BufferError, ValueError):
        array, does = None, "refuses"
    ours.let_go()
    del array
    gc.collect()
    require(len(ours.released) == 1, "release of CUDA_HOST")
    return f"{does} CUDA_HOST"


DTYPES = ("float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 "
          "uint64 bool complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
          "float8_e5m2fnuz float8_e8m0fnu").split()


def check(name):
    try:
        module = importlib.import_module(name)
        if not hasattr(module, "from_dlpack"):
            raise ImportError("it has no from_dlpack")
    except (ImportError, OSError) as why:
        print(f"SKIPPED: no {name}: {why}")
        return False
    forms = [check_life(module, producer) for producer in (Producer, OldProducer)]
    check_pages(module)
    check_exit(name)
    check_forms(module)
    known = check_dtypes(module, DTYPES)
    if name == "numpy":
        check_numpy(module)
    forms.append(check_cuda_host(module))
    print(f"{name} {module.__version__}: {', '.join(forms)}; {' '.join(known)}")
    return True


def main():
    if os.environ.get(LEAVE):
        return leave(importlib.import_module(os.environ[LEAVE]))
    return 0 if any([check("numpy"), check("torch")]) else 77


sys.exit(main())
