#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shims of a wheel: make_shims.py FOLDER [--releases 2.8.0 ...] [--target aarch64]
                      make_shims.py FOLDER --installed SITE-PACKAGES [--target aarch64]

A shim of each release of PyTorch goes to FOLDER as libdrystone_torch_2_N.so. Headers come from
PyTorch's wheels for macOS, the smallest, which have the same as those for Linux; CUDA's from its
packages on the index. This downloads 800 MB. --installed makes the one shim for the PyTorch that
lies in a folder, with CUDA's headers beside it, and downloads nothing.

Nothing of what a shim calls is here: libraries without functions stand in when it is linked. With
packaging/older_system.cc a shim wants glibc 2.28 and the libstdc++ of GCC 8, which is checked. A
shim that is there already, of these sources, is not made again.

Exit status: 0; 1 if a shim cannot be made; 4 if the headers or the compiler are missing.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
from drystone.torch import _build  # noqa: E402

RELEASES = ["2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0"]
CUDA = ["nvidia-cuda-runtime>=13,<14", "nvidia-cuda-crt>=13,<14"]
OLDEST = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}  # the first version of a processor
LIBRARIES = ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libdrystone.so.0"]
OLDER = ROOT / "packaging/older_system.cc"
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}  # of manylinux_2_28


class Missing(Exception):
    """Headers or a compiler."""


def download(folder, words):
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                           "--only-binary=:all:", "--disable-pip-version-check", "--dest",
                           str(folder), *words], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        raise Missing(f"{words[-1]} cannot be downloaded: {lines[-1]}")


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


def make_empty(folder, cxx, target):
    """Libraries of these names without functions; the words that link to them."""
    for name in LIBRARIES:
        subprocess.run([*cxx, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o",
                        str(folder / name), f"-Wl,-soname,{name}"], check=True)
    # Before 2.34 these two were not libc's. Newer systems have this version of both, too.
    source, script = folder / "dl.c", folder / "dl.map"
    source.write_text("void dlopen(void) {}\nvoid dlsym(void) {}\n")
    script.write_text(f"{OLDEST[target]} {{ dlopen; dlsym; }};\n")
    subprocess.run([*cxx, "-shared", "-nostdlib", "-x", "c", str(source), "-o",
                    str(folder / "libdl.so.2"), "-Wl,-soname,libdl.so.2",
                    f"-Wl,--version-script={script}"], check=True)
    names = [*LIBRARIES, "libdl.so.2"]
    return [f"-L{folder}", "-Wl,--no-as-needed", *(f"-l:{name}" for name in names), "-s"]


def is_made(out):
    """Of these sources: nothing of them is newer."""
    sources = [OLDER, *(path for folder in _build.sources() for path in folder.rglob("*"))]
    newest = max(path.stat().st_mtime for path in sources if path.is_file())
    return out.is_file() and out.stat().st_mtime > newest


def check(shim):
    """A shim that an older system refuses is an error here, not there."""
    said = subprocess.run(["readelf", "-VW", str(shim)], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    for name, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", said):
        if tuple(map(int, version.split("."))) > NEWEST[name]:
            raise subprocess.CalledProcessError(1, [f"{shim.name} wants {name}_{version}: "
                                                    f"{OLDER.name} must have what it is for"])


def make(release, out, cxx, libraries, find_headers):
    """What was done. find_headers(folder) is asked for PyTorch's headers and CUDA's."""
    if is_made(out):
        return f"{out.name}: there"
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = pathlib.Path(temporary)
        words = _build.compile_command(cxx, release, *find_headers(folder), folder / out.name,
                                     [str(OLDER), *libraries])
        subprocess.run(words, check=True)
        check(folder / out.name)
        os.replace(folder / out.name, out)
    return f"{out.name}: {out.stat().st_size >> 10} KiB"


def downloaded(given, folder):
    """[(release, how its headers are found)]"""
    wanted = [(tuple(int(part) for part in release.split(".")[:2]), release)
              for release in given.releases]
    if all(is_made(name_of(given, number)) for number, _ in wanted):
        return [(number, None) for number, _ in wanted]
    cuda = headers_of_cuda(folder)
    return [(number, lambda place, release=release: (headers_of(release, place), cuda))
            for number, release in wanted]


def installed(packages):
    """The same, for the PyTorch in a folder of packages."""
    torch = packages / "torch"
    found = re.search(r"(\d+)\.(\d+)", (torch / "version.py").read_text()
                      if (torch / "version.py").is_file() else "")
    cuda = _build.cuda_headers(torch)
    if not found or not (torch / "include/c10/cuda/CUDACachingAllocator.h").is_file():
        raise Missing(f"{packages} has no PyTorch with headers for CUDA")
    if cuda is None:
        raise Missing(f"{packages} has no headers of CUDA's runtime")
    return [((int(found[1]), int(found[2])), lambda _: (torch / "include", cuda))]


def name_of(given, release):
    return given.folder / f"libdrystone_torch_{release[0]}_{release[1]}.so"


def make_all(given, folder):
    cxx = [f"{given.target}-linux-gnu-g++"]
    if not shutil.which(cxx[0]):
        package = f"g++-{given.target.replace('_', '-')}-linux-gnu"
        raise Missing(f"there is no {cxx[0]}: install {package}")
    wanted = installed(given.installed) if given.installed else downloaded(given, folder)
    libraries = make_empty(folder, cxx, given.target)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda one: make(one[0], name_of(given, one[0]), cxx, libraries, one[1]),
                        wanted)
        for line in made:
            print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(":")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--releases", nargs="+", default=RELEASES)
    parser.add_argument("--installed", type=pathlib.Path)
    parser.add_argument("--target", choices=["x86_64", "aarch64"], default="x86_64")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
            make_all(given, pathlib.Path(temporary))
    except Missing as why:
        print(f"make_shims: {why}", file=sys.stderr)
        return 4
    except subprocess.CalledProcessError as why:
        print(f"make_shims: failed: {' '.join(why.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
