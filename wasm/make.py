#!/usr/bin/env python3
"""Makes drystone.html, and drystone.wasm, the engine in it:

    make.py get FOLDER        gets zig from PyPI, and the sources of jansson, zlib and zstd from the system's packages
    make.py build FOLDER OUT  compiles the engine with them; OUT is the engine alone (.wasm), or the page (.html), which
                              takes node and its packages: npm ci in viewer

The engine is the library without its system parts, and what the commands of the page need of the tool. page.c is its
face. platform.c stands where a system would be needed.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ZIG = "ziglang==0.17.1"
DEBIAN = ["jansson", "zlib", "libzstd"]

# These need threads, processes, mappings or a device.
SYSTEM = {"os", "device/cuda", "host/facts", "host/pages", "host/tensor", "host/pinned", "host/doctor", "live",
          "pool/share", "pool/checkpoint", "plan", "plan/chain", "plan/one", "plan/nested", "plan/rules",
          "plan/knapsack", "plan/graph", "plan/estimate", "trace/anonymize", "trace/arrow"}
NEEDED = ["os/fork.c"]
TOOL = {
    "base": "fail fields json_in json_out options report rows table term",
    "bucket": "absent object_name",
    "explain": "cmd_explain cmd_steps explain_changes explain_json explain_report figures message_report steps_report",
    "export": "export_names",
    "gate": "condition gate gate_file gate_note",
    "record": "byte_hash cmd_info html_source info info_doubts info_json info_report input json_source load moment"
              " provenance study",
    "sweep": "cmd_sweep recommend_report sweep_grid sweep_json sweep_rank sweep_report sweep_result sweep_run"
             " sweep_search",
    "view": "alloc_rows answer_about answer_command answer_map answer_reserved answer_stacks answer_tile category_sums pack texts"
            " view",
    "work": "part",
}
OURS = ["-std=c11", "-D_GNU_SOURCE", "-DDRYI_ASSERT_LEVEL=1", "-Wall", "-Wshorten-64-to-32", "-Werror"]
THEIRS = ["-w"]
JANSSON = ["-DHAVE_STDINT_H", "-DHAVE_INTTYPES_H", "-DHAVE_FCNTL_H", "-DHAVE_UNISTD_H", "-DHAVE_SYS_TIME_H",
           "-DHAVE_SYS_TYPES_H", "-DHAVE_GETTIMEOFDAY", "-DINITIAL_HASHTABLE_ORDER=3"]
ZLIB = "adler32 crc32 inflate inffast inftrees zutil"
# WASI has no signals; the fork handlers that the library registers are never called.
LINK = ["-mexec-model=reactor", "-s", "-Wl,-z,stack-size=1048576", "-lwasi-emulated-signal", "-lwasi-emulated-mman",
        "-lwasi-emulated-getpid"]


def run(*command, **options):
    if subprocess.run(command, check=False, **options).returncode != 0:
        raise SystemExit(f"make.py: it failed: {command[0]} {command[1]} ... {command[-1]}")


# --- getting -----------------------------------------------------------------------------------------------------


def list_sources(folder):
    """Write the system's list of packages again, for sources. Returns how apt-get is told to use it."""
    parts = folder / "sources.list.d"
    parts.mkdir(parents=True, exist_ok=True)
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    apt = pathlib.Path("/etc/apt")
    for path in [apt / "sources.list", *apt.glob("sources.list.d/*")]:
        if path.is_file():
            text = re.sub(r"(?m)^deb\s", "deb-src ", path.read_text())
            (parts / path.name).write_text(re.sub(r"(?m)^Types:.*", "Types: deb-src", text))
    return ["-o", f"Dir::Etc::SourceList={parts}/sources.list", "-o", f"Dir::Etc::SourceParts={parts}",
            "-o", f"Dir::State::Lists={folder}/lists", "-o", "APT::Sandbox::User=root"]


def get_source(package, apt, folder):
    """Get the newest version that can be had: mirrors do not all have those of the last days."""
    about = subprocess.run(["apt-cache", *apt, "showsrc", "--only-source", package], capture_output=True, text=True,
                           check=True)
    for version in re.findall(r"(?m)^Version: (.*)", about.stdout):
        command = ["apt-get", "-qq", *apt, "source", "--download-only", f"{package}={version}"]
        if subprocess.run(command, cwd=folder, check=False).returncode == 0:
            return
    sys.exit(f"make.py: the system's packages have no source of {package}")


def get(folder):
    folder.mkdir(parents=True, exist_ok=True)
    run(sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", folder / "zig", ZIG)
    apt = list_sources(folder)
    run("apt-get", "-qq", *apt, "update")
    for package in DEBIAN:
        get_source(package, apt, folder)
    for package in folder.glob("*.orig.tar.*"):
        if package.suffix != ".asc":
            shutil.unpack_archive(package, folder)  # a bare system has no xz
    (folder / "ready").touch()


# --- compiling ---------------------------------------------------------------------------------------------------


def find(folder, name):
    """Return the folder of a package's sources, whatever its version is."""
    found = [path for path in sorted(folder.glob(f"{name}-*")) if path.is_dir()]
    if not found:
        sys.exit(f"make.py: no {name}-* in {folder}: make.py get {folder}")
    return found[-1]


def write_headers(jansson, folder):
    """Write the two headers that jansson's configure would write. JANSSON has what the second one says."""
    (folder / "jansson_private_config.h").write_text("")
    text = (jansson / "src/jansson_config.h.in").read_text()
    for name, value in {"json_inline": "inline", "json_have_long_long": "1", "json_have_localeconv": "0",
                        "json_have_atomic_builtins": "0", "json_have_sync_builtins": "0"}.items():
        text = text.replace(f"@{name}@", value)
    (folder / "jansson_config.h").write_text(text)


def list_files(folder, made):
    """Yield each source with its options."""
    jansson, zlib, zstd = (find(folder, name) for name in ("jansson", "zlib", "zstd"))
    write_headers(jansson, made)
    deps = [f"-I{path}" for path in (made, jansson / "src", zlib, zstd / "lib")]
    layers = [line.split(":")[0] for line in (ROOT / "src/layers").read_text().splitlines() if ":" in line]
    ours = [path for layer in layers if layer not in SYSTEM for path in sorted((ROOT / "src" / layer).glob("*.c"))]
    for path in ours + [ROOT / "src" / name for name in NEEDED]:
        yield path, [*OURS, f"-I{ROOT}/include", f"-I{ROOT}/src"]
    tool = [ROOT / "tool" / part / f"{name}.c" for part, names in TOOL.items() for name in names.split()]
    for path in [*tool, ROOT / "wasm/page.c", ROOT / "wasm/platform.c"]:
        yield path, [*OURS, f"-I{ROOT}/tool", f"-I{ROOT}/include", *deps]
    for path in sorted((jansson / "src").glob("*.c")):
        yield path, [*THEIRS, *JANSSON, *deps]
    for name in ZLIB.split():
        yield zlib / f"{name}.c", THEIRS
    for path in sorted([*zstd.glob("lib/common/*.c"), *zstd.glob("lib/decompress/*.c")]):
        yield path, [*THEIRS, "-DZSTD_DISABLE_ASM"]


def build(folder, out):
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-g0",
           "-D_WASI_EMULATED_SIGNAL", "-D_WASI_EMULATED_MMAN", "-D_WASI_EMULATED_GETPID"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "zig")}
    with tempfile.TemporaryDirectory() as made:
        def compile_one(numbered):
            number, (path, options) = numbered
            made_object = f"{made}/{number}.o"
            run(*zig, *options, "-c", path, "-o", made_object, env=environment)
            return made_object

        files = list(enumerate(list_files(folder, pathlib.Path(made))))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as crew:
            objects = list(crew.map(compile_one, files))
        run(*zig, *objects, *LINK, "-o", out, env=environment)


def make_page(folder, out):
    engine = folder / "drystone.wasm"
    build(folder, engine)
    run("node", ROOT / "viewer/build.mjs", "--engine", engine, out)


def main(words):
    if len(words) == 2 and words[0] == "get":
        get(pathlib.Path(words[1]).resolve())
    elif len(words) == 3 and words[0] == "build":
        folder, out = (pathlib.Path(word).resolve() for word in words[1:])
        out.parent.mkdir(exist_ok=True)
        (make_page if out.suffix == ".html" else build)(folder, out)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
