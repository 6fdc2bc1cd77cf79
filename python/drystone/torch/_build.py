# SPDX-License-Identifier: Apache-2.0
"""Builds a shim from its sources, for the PyTorch that is installed.

Wants a C++ compiler ($CXX, c++, g++ or clang++) and the headers of PyTorch, which its wheel has,
and of CUDA's runtime, which lie beside it, in $CUDA_HOME or in /usr/local/cuda.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

from .._errors import Error

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[2]  # of a checkout


def sources() -> tuple[pathlib.Path, pathlib.Path] | None:
    """(folder of the shim's sources, folder of Drystone's headers), packaged or of a checkout."""
    for code, headers in ((_HERE / "shim_sources", _HERE.parent / "include"),
                          (_ROOT / "shim", _ROOT / "include")):
        if (code / "allocator.cc").is_file() and (headers / "drystone" / "pool.h").is_file():
            return code, headers
    return None


def cuda_headers(torch_folder: pathlib.Path) -> pathlib.Path | None:
    """A folder with cuda_runtime_api.h; None: there is none."""
    places = list(torch_folder.parent.glob("nvidia/*/include"))
    for folder in [*site.getsitepackages(), site.getusersitepackages(), *sys.path]:
        places += pathlib.Path(folder).glob("nvidia/*/include")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            places.append(pathlib.Path(os.environ[name], "include"))
    places.append(pathlib.Path("/usr/local/cuda/include"))
    for place in places:
        if (place / "cuda_runtime_api.h").is_file() and (place / "crt").is_dir():
            return place
    return None


def compiler() -> list[str] | None:
    """$CXX, or the first there is; None: none."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return None


def compile_command(cxx: list[str], release: tuple[int, int], torch_include: pathlib.Path,
                  cuda_include: pathlib.Path, out: pathlib.Path,
                  libraries: Sequence[str] = ()) -> list[str]:
    """The command that makes a shim of the release (2, 15) from the sources."""
    found = sources()
    assert found is not None
    code, headers = found
    includes = [f"-I{code}", f"-I{headers}"]
    for folder in (torch_include, torch_include / "torch/csrc/api/include", cuda_include):
        includes += ["-isystem", str(folder)]
    return [*cxx, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-shared",
            f"-DDRY_TORCH={release[0]}{release[1]:02}", "-Wno-deprecated-declarations", *includes,
            *sorted(str(path) for path in code.glob("*.cc")), "-o", str(out),
            "-Wl,--allow-shlib-undefined", *libraries]


def build(torch: ModuleType, release: tuple[int, int], out: pathlib.Path,
          error: type[Error]) -> None:
    """Make the shim at `out`; `error` is raised with what is missing, or the compiler's text."""
    folder = pathlib.Path(str(torch.__file__)).resolve().parent
    why = f"there is no shim for PyTorch {torch.__version__} here, and it cannot be built: "
    cxx, headers = compiler(), cuda_headers(folder)
    if sources() is None:
        raise error(why + "the shim's sources are missing")
    if cxx is None:
        raise error(why + "there is no C++ compiler (install g++, or set CXX)")
    if not (folder / "include/c10/cuda/CUDACachingAllocator.h").is_file():
        raise error(why + f"{folder}/include has no headers of PyTorch")
    if headers is None:
        raise error(why + "the headers of CUDA's runtime are missing (install nvidia-cuda-runtime "
                          "and nvidia-cuda-crt, or set CUDA_HOME)")
    libraries = [f"-L{folder / 'lib'}", "-Wl,--no-as-needed", "-lc10", "-lc10_cuda", "-ltorch_cpu"]
    command = compile_command(cxx, release, folder / "include", headers, out, libraries)
    print(f"drystone: building the shim for PyTorch {torch.__version__}, once", file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line][:3]
        raise error(why + "the compiler says:\n  " + "\n  ".join(lines or ["nothing"]))


def _digest() -> str:
    """Of the sources, so that a shim of other sources is never taken."""
    found = sources()
    assert found is not None
    code, headers = found
    digest = hashlib.sha256()
    for path in [*sorted(code.glob("*.cc")), *sorted(code.glob("*.h")),
                 *sorted((headers / "drystone").glob("*.h"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def place(torch: ModuleType, release: tuple[int, int], error: type[Error]) -> pathlib.Path:
    """Where the shim is in the cache folder, once it is built."""
    if sources() is None:
        raise error(f"there is no shim for PyTorch {torch.__version__}, and no sources of one")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    name = f"torch-{torch.__version__}-{_digest()}"
    return pathlib.Path(base, "drystone", name, f"libdrystone_torch_{release[0]}_{release[1]}.so")


def cached(torch: ModuleType, release: tuple[int, int], error: type[Error]) -> pathlib.Path:
    """The shim in the cache folder, built if it is not there: once, by one rank of a job."""
    path = place(torch, release, error)
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.parent / "lock", "w") as lock:
            with contextlib.suppress(OSError):  # without locks, several may build
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.is_file():
                with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                    fresh = pathlib.Path(folder, path.name)
                    build(torch, release, fresh, error)
                    os.replace(fresh, path)  # whole, or not at all, whoever else builds
    except OSError as why:
        raise error(f"the shim cannot be kept in {path.parent}: {why}") from None
    return path
