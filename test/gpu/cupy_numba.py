#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy and Numba in our memory on this machine's NVIDIA GPU: one line a check.

    pip install numpy 'cupy-cuda13x[ctk]' 'numba-cuda[cu13]'
    test/gpu/cupy_numba.py

Takes less than 40 s. The library is $DRYSTONE_LIBRARY, or it is built by cc. What needs a part of
CUDA that is not installed is skipped, aloud. Ends with 1 if a check fails.
"""
import gc
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("cupy paged", "cupy torch", "numba paged", "numba torch")
MISSING = ("libnvrtc", "libcublas", "nvvm", "libdevice", "cuda_fp16.h", "CUDA_HOME", "headers")
failed = []
kept = []  # arrays that are alive when the interpreter ends


def check(name, work):
    """Run one check, and print what it returns; what a missing library keeps from is skipped."""
    begin = time.perf_counter()
    try:
        said = work()
    except Exception as why:  # any failure is one line
        text = f"{type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}"
        is_missing = any(word.lower() in str(why).lower() for word in MISSING)
        print(f"{'SKIPPED' if is_missing else 'FAILED '} {name}: {text}", flush=True)
        if not is_missing:
            failed.append(name)
        return
    print(f"ok      {name}: {said or 'as expected'} ({time.perf_counter() - begin:.2f} s)",
          flush=True)


def require(holds, what):
    if not holds:
        raise AssertionError(what)


def as_text(name):
    return name.decode() if isinstance(name, bytes) else name


def build_library():
    """Build the parts of the library that need no other library, by as many cc as CPUs."""
    folder = ROOT / "build-gpu" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(path for part in ("base", "os", "device", "place", "pool", "host")
                     for path in (ROOT / "src" / part).rglob("*.c"))
    compiler = os.environ.get("CC", "cc")
    words = "-std=c11 -O2 -fPIC -D_GNU_SOURCE -DDRYI_ASSERT_LEVEL=1 -Iinclude -Isrc -c".split()
    objects, running = [], []
    for source in sources:
        objects.append(str(folder / (source.stem + ".o")))
        running.append(subprocess.Popen([compiler, *words, str(source), "-o", objects[-1]],
                                        cwd=ROOT))
        if len(running) >= (os.cpu_count() or 1):
            require(running.pop(0).wait() == 0, "cc failed")
    require(all(one.wait() == 0 for one in running), "cc failed")
    library = folder / "libdrystone.so"
    subprocess.run([compiler, "-shared", "-o", str(library), *objects, "-pthread", "-ldl", "-lm"],
                   check=True)
    return library


def run_document(page):
    """Run the first program of a page in a process of its own."""
    text = (ROOT / "doc" / "python" / page).read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=False)
    require(done.returncode == 0, done.stderr[-300:])
    return " / ".join(done.stdout.split("\n")).strip(" /")


# --- CuPy --------------------------------------------------------------------------------------

def cupy_values():
    import cupy
    import drystone.cupy as ours
    array = cupy.asarray(list(range(1000)), dtype="float64")
    require(float(array.get().sum()) == 499500, "a copy there and back")
    require(float((array * 2 + 1).sum()) == 1000000, "values")
    return f"{ours.used_bytes()} bytes in use"


def cupy_streams():
    """Arrays of three streams at once keep their bytes, whatever comes and goes between."""
    import cupy
    import numpy
    import drystone.cupy as ours
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    alive, drawn = [], random.Random(7)
    for step in range(3000):
        stream = drawn.choice(streams)
        with stream:
            array = cupy.empty(drawn.randrange(1, 1 << drawn.randrange(8, 22)), "uint8")
            array.data.memset_async(step % 251, array.nbytes, stream)
        alive.append((array, step % 251, stream))
        if len(alive) > 60:
            array, value, stream = alive.pop(drawn.randrange(len(alive)))
            other = drawn.choice(streams)
            ours.record_stream(array, other)
            stream.synchronize()
            with other:
                seen = array.get()
            require(bool((seen == numpy.uint8(value)).all()), f"bytes of step {step}")
    del alive, array
    cupy.cuda.Device().synchronize()
    ours.pool().verify()
    return f"3000 arrays, {ours.total_bytes() >> 20} MiB reserved"


def cupy_pinned():
    import cupy
    import cupyx
    import numpy
    import drystone.cupy as ours
    host = cupyx.empty_pinned((1 << 22,), "float32")
    host[:] = numpy.arange(1 << 22, dtype="float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        array = cupy.empty(host.shape, "float32")
        array.set(host)
        back = cupy.asnumpy(array)
    stream.synchronize()
    require(bool((back == host).all()), "values")
    return f"{ours._installed.cache.stats()['allocated_bytes.current'] >> 20} MiB pinned"


def cupy_out_of_memory():
    import cupy
    free, total = cupy.cuda.Device().mem_info
    try:
        cupy.empty(total * 2, "uint8")
    except cupy.cuda.memory.OutOfMemoryError as why:
        text = str(why)
    else:
        raise AssertionError("twice the device was to be had")
    array = cupy.empty(free // 2, "uint8")
    require(array.nbytes == free // 2, "half of what is free")
    return text


def cupy_gives_back():
    import cupy
    import drystone.cupy as ours
    gc.collect()
    cupy.cuda.Device().synchronize()
    before = ours.total_bytes()
    ours.free_all_blocks()
    require(ours.total_bytes() <= before, "more than before")
    return f"{before >> 20} MiB reserved, {ours.total_bytes() >> 20} after"


def pair_time(make, count=20000):
    make()
    begin = time.perf_counter()
    for _ in range(count):
        make()
    return (time.perf_counter() - begin) / count * 1e6


def cupy_pairs():
    import cupy
    import drystone.cupy as ours
    placement = ours._installed.placement
    mine = pair_time(lambda: cupy.empty(1 << 20, "uint8"))
    ours.disable()
    theirs = pair_time(lambda: cupy.empty(1 << 20, "uint8"))
    ours.enable(placement)
    return f"1 MiB made and dropped in {mine:.2f} us, by CuPy's own pool in {theirs:.2f}"


def cupy_tensors():
    """Our pinned tensors are where the device copies from at full speed."""
    import cupy
    import numpy
    import drystone
    size, said = 256 << 20, []
    target = cupy.empty(size, "uint8")
    for name, words in (("pinned", {"pinned": True}), ("pages", {})):
        tensor = drystone.zeros(size, "uint8", **words)
        view = numpy.asarray(tensor)
        view[-1] = 7
        stream = cupy.cuda.Stream(non_blocking=True)
        for _ in range(2):
            begin = time.perf_counter()
            target.data.copy_from_host_async(tensor.data_ptr, size, stream)
            stream.synchronize()
            took = time.perf_counter() - begin
        require(int(target[-1].get()) == 7, "the last byte")
        said.append(f"{name} {size / took / 1e9:.1f} GB/s")
    return ", ".join(said)


def run_cupy(placement):
    import cupy
    import drystone.cupy as ours
    ours.enable(placement)
    print(f"# CuPy {cupy.__version__}, {placement}: "
          f"{as_text(cupy.cuda.runtime.getDeviceProperties(0)['name'])}", flush=True)
    for name, work in (("streams", cupy_streams), ("pinned", cupy_pinned),
                       ("values", cupy_values), ("out of memory", cupy_out_of_memory),
                       ("tensors", cupy_tensors), ("pairs", cupy_pairs),
                       ("gives back", cupy_gives_back)):
        check(f"cupy {placement} {name}", work)
    if placement == "paged":
        check("doc/python/cupy.md", lambda: run_document("cupy.md"))
    kept.extend([cupy.empty(1000), cupy.cuda.alloc_pinned_memory(1000)])


# --- Numba -------------------------------------------------------------------------------------

def numba_copies():
    import numpy
    from numba import cuda
    import drystone.numba as ours
    host = numpy.arange(1 << 20, dtype="float64")
    device = cuda.to_device(host)
    require(bool((device.copy_to_host() == host).all()), "values")
    require(ours.pool().stats()["allocated_bytes.all.current"] >= 8 << 20, "not in our pool")
    return f"{ours.pool().stats()['reserved_bytes.all.current'] >> 20} MiB reserved"


def numba_pinned():
    import numpy
    from numba import cuda
    stream = cuda.stream()
    host = cuda.pinned_array(1 << 20, "float32")
    host[:] = 3
    device = cuda.to_device(host, stream=stream)
    stream.synchronize()
    require(bool((device.copy_to_host() == 3).all()), "values")
    mapped = cuda.mapped_array(1000, "float32")
    mapped[:] = 5
    cuda.synchronize()
    return f"pinned {host.nbytes >> 20} MiB, mapped sum {numpy.asarray(mapped).sum():.0f}"


def numba_kernel():
    """Blocks that are dropped while kernels on other streams use them keep their bytes."""
    import numpy
    from numba import cuda

    @cuda.jit
    def add(array, value):
        i = cuda.grid(1)
        if i < array.size:
            for _ in range(200):
                array[i] += value
    streams = [cuda.stream() for _ in range(3)]
    kept, results = 1 << 18, []
    for step in range(200):
        stream = streams[step % 3]
        array = cuda.to_device(numpy.zeros(kept, "float32"), stream=stream)
        add[(kept + 255) // 256, 256, stream](array, step)
        result = cuda.pinned_array(kept, "float32")
        array.copy_to_host(result, stream=stream)
        results.append((result, 200.0 * step))
        del array
    cuda.synchronize()
    for result, value in results:
        require(bool((result == value).all()), f"{value} is {result[0]}")
    return "200 kernels on 3 streams"


def numba_out_of_memory():
    from numba import cuda
    info = cuda.current_context().get_memory_info()
    try:
        cuda.device_array(info.total * 2, "uint8")
    except MemoryError as why:
        return str(why)
    raise AssertionError("twice the device was to be had")


def numba_ipc():
    """Another process sees the bytes; placement paged refuses with a reason."""
    import pickle
    import numpy
    from numba import cuda
    import drystone
    array = cuda.to_device(numpy.arange(1000, dtype="float32"))
    try:
        handle = array.get_ipc_handle()
    except drystone.Error as why:
        return str(why)
    program = ("import pickle, sys\nfrom numba import cuda\n"
               "with pickle.load(sys.stdin.buffer) as array:\n"
               "    print(array.copy_to_host().sum())\n")
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(handle),
                          capture_output=True, timeout=60, check=False)
    require(done.stdout.strip() == b"499500.0", done.stderr.decode()[-300:] or "another sum")
    return "another process saw the values"


def numba_gives_back():
    from numba import cuda
    import drystone.numba as ours
    gc.collect()
    ours.pool().verify()
    cuda.current_context().reset()
    return f"{ours.pool().stats()['reserved_bytes.all.current']} bytes reserved after reset"


def run_numba(placement):
    import numba_cuda
    from numba import cuda
    import drystone.numba as ours
    ours.enable(placement)
    print(f"# numba-cuda {numba_cuda.__version__}, {placement}: "
          f"{as_text(cuda.get_current_device().name)}", flush=True)
    for name, work in (("copies", numba_copies), ("pinned", numba_pinned),
                       ("kernel", numba_kernel), ("out of memory", numba_out_of_memory),
                       ("ipc", numba_ipc), ("gives back", numba_gives_back)):
        check(f"numba {placement} {name}", work)
    if placement == "paged":
        check("doc/python/numba.md", lambda: run_document("numba.md"))
    kept.extend([cuda.device_array(1000), cuda.pinned_array(1000)])


def main():
    sys.path.insert(0, str(ROOT / "python"))
    if len(sys.argv) == 3:
        {"cupy": run_cupy, "numba": run_numba}[sys.argv[1]](sys.argv[2])
        return 1 if failed else 0
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    if not environment.get("DRYSTONE_LIBRARY"):
        environment["DRYSTONE_LIBRARY"] = str(build_library())
    codes = [subprocess.run([sys.executable, __file__, *part.split()], env=environment,
                            check=False).returncode for part in PARTS]
    print(f"# {codes.count(0)} of {len(PARTS)} parts passed", flush=True)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
