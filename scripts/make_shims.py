#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shims of a wheel: make_shims.py FOLDER [--releases 2.8.0 ...] [--target aarch64]

A shim of each release of PyTorch goes to FOLDER as libdrystone_torch_2_N.so. Headers come from
PyTorch's wheels for macOS, the smallest, which have the same as those for Linux; CUDA's from its
packages on the index. Nothing of what a shim calls is here: libraries without functions stand in
when it is linked. What is there already, of these sources, is not made again.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
from drystone.torch import _build  # noqa: E402

RELEASES = ["2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0"]
CUDA = ["nvidia-cuda-runtime>=13,<14", "nvidia-cuda-crt>=13,<14"]
LIBRARIES = ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libdrystone.so.0"]
# glibc has the word since 2.32; with one of our own, a shim wants no newer glibc than 2.14.
SINGLE_THREADED = 'extern "C" { __attribute__((visibility("hidden"))) char __libc_single_threaded; }\n'


def download(folder, words):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                    "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder),
                    *words], check=True)


def unpack(folder, prefix):
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(prefix)]
            archive.extractall(folder, names)
        wheel.unlink()


def headers_of(release, folder):
    """The include folder of PyTorch's release."""
    download(folder, ["--platform", "macosx_14_0_arm64", "--python-version", "3.12",
                      f"torch=={release}"])
    unpack(folder, "torch/include/")
    # One header is made by a build for CUDA; it says that c10_cuda is a shared library.
    macros = folder / "torch/include/c10/cuda/impl/cuda_cmake_macros.h"
    macros.parent.mkdir(exist_ok=True)
    macros.write_text("#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n")
    return folder / "torch/include"


def headers_of_cuda(folder):
    download(folder, ["--platform", "manylinux2014_x86_64", *CUDA])
    unpack(folder, "nvidia/")
    return next(folder.glob("nvidia/*/include"))


def make_empty(folder, cxx):
    """Libraries of these names without functions; the words that link to them."""
    for name in LIBRARIES:
        subprocess.run([*cxx, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o",
                        str(folder / name), f"-Wl,-soname,{name}"], check=True)
    return [f"-L{folder}", "-Wl,--no-as-needed", *(f"-l:{name}" for name in LIBRARIES), "-s"]


def make(release, given, cxx, cuda, libraries):
    major, minor = (int(part) for part in release.split(".")[:2])
    out = given.folder / f"libdrystone_torch_{major}_{minor}.so"
    newest = max(path.stat().st_mtime for folder in _build.sources()
                 for path in folder.rglob("*") if path.is_file())
    if out.is_file() and out.stat().st_mtime > newest:
        return f"{out.name}: there"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        extra = folder / "single_threaded.cc"
        extra.write_text(SINGLE_THREADED)
        words = _build.compile_words(cxx, (major, minor), headers_of(release, folder), cuda,
                                     folder / out.name, [str(extra), *libraries])
        subprocess.run(words, check=True)
        os.replace(folder / out.name, out)
    return f"{out.name}: {out.stat().st_size >> 10} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--target", choices=["x86_64", "aarch64"], default="x86_64")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    cxx = [f"{given.target}-linux-gnu-g++"]
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        folder = pathlib.Path(temporary)
        cuda = headers_of_cuda(folder)
        libraries = make_empty(folder, cxx)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for line in pool.map(lambda release: make(release, given, cxx, cuda, libraries),
                                 given.releases):
                print(line, flush=True)


main()
