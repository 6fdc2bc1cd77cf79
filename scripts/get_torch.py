#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch for tests on a CPU: get_torch.py FOLDER VERSION

The wheel of the package index wants gigabytes of NVIDIA's libraries, of which nothing is called
where there is no GPU. It is installed without them, and what the dynamic linker still asks for
is filled in by libraries without functions. The folder is for DRY_TEST_PYTHON, together with
TORCH_USE_RTLD_GLOBAL=1, by which PyTorch looks functions up when they are called.
"""
import compileall
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# The runtime's own library is small, and called when PyTorch is loaded; its headers want the last.
PACKAGES = ("typing_extensions", "sympy", "mpmath", "networkx", "fsspec", "filelock", "jinja2",
            "MarkupSafe", "setuptools", "nvidia-cuda-runtime>=13,<14",
            "nvidia-cuda-crt>=13,<14")


def output_of(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def install(folder, version):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                    "--no-compile", "--no-cache-dir", "--only-binary=:all:", "--target",
                    str(folder), f"torch=={version}", *PACKAGES], check=True)


def wanted_by(libraries):
    """{name: libraries that need it}, of what is neither here nor the system's."""
    here = {path.name for path in libraries}
    system = output_of("ldconfig", "-p")
    wanted = {}
    for path in libraries:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", str(path))):
            if name not in here and f"\t{name} " not in system:
                wanted.setdefault(name, []).append(path)
    return wanted


def versioned_symbols(users):
    """{version: names} of NVSHMEM: the one library whose data is looked up at once."""
    found = {}
    for path in users:
        listed = output_of("nm", "-D", "--undefined-only", str(path))
        for name, version in re.findall(r" U (\w+)@+(NVSHMEM\w*)", listed):
            found.setdefault(version, set()).add(name)
    return found


def make_empty(folder, name, users):
    """A shared library of that name, which has those symbols and nothing else."""
    versions = versioned_symbols(users) if "nvshmem" in name else {}
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "empty.c"), pathlib.Path(scratch, "empty.map")
        source.write_text("".join(f"char {symbol}[64];\n" for symbols in versions.values()
                                  for symbol in sorted(symbols)))
        script.write_text("".join(f"{version} {{ global: {'; '.join(sorted(symbols))}; }};\n"
                                  for version, symbols in versions.items()))
        words = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", str(source), "-o",
                 str(folder / name)]
        if versions:
            words.insert(1, f"-Wl,--version-script={script}")
        subprocess.run(words, check=True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    ready = folder / "ready"
    if ready.exists():
        return
    if folder.exists() and any(folder.iterdir()) and not (folder / "torch").is_dir():
        sys.exit(f"get_torch: {folder} is not empty")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        install(folder, version)
        libraries = sorted(path for path in folder.rglob("*.so*") if path.is_file())
        for name, users in sorted(wanted_by(libraries).items()):
            make_empty(folder / "torch" / "lib", name, users)
        # A test that could not keep what Python compiles would compile 2,000 files at each start.
        compileall.compile_dir(folder, quiet=2, workers=0)
        ready.touch()
    except (subprocess.CalledProcessError, OSError) as why:
        sys.exit(f"get_torch: {why}")


main()
