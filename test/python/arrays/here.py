# SPDX-License-Identifier: Apache-2.0
"""The package for tests of arrays, and the libraries that a test needs, or it is skipped.

NumPy, JAX, CuPy, Numba and RMM are those that are installed, or of the folder $DRY_TEST_ARRAYS,
which `pip install --target FOLDER -r test/python/arrays/requirements.txt` makes. PyTorch is that
of $DRY_TEST_PYTHON.
"""
import importlib
import os
import pathlib
import site
import sys

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[3]
# A program that a test starts begins with this, and then finds the same libraries.
BEGIN = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); import here\n"

sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/support")]
if os.environ.get("DRY_TEST_PYTHON"):
    sys.path.insert(0, os.environ["DRY_TEST_PYTHON"])
    os.environ.setdefault("TORCH_USE_RTLD_GLOBAL", "1")
if os.environ.get("DRY_TEST_ARRAYS"):
    site.addsitedir(os.environ["DRY_TEST_ARRAYS"])  # with its .pth files: Numba's has one
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from said import main  # noqa: E402, F401


def need(name):
    """Return a library; without it the program ends as skipped."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as why:
        print(f"SKIPPED: no {name}: {why}")
        sys.exit(SKIPPED)


def need_here(case, name):
    """Skip one test where a library is missing."""
    try:
        importlib.import_module(name)
    except (ImportError, OSError) as why:
        case.skipTest(f"no {name}: {why}")


def memory_bytes():
    """Return the address space that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def is_mapped(address):
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= address < end:
                return True
    return False


def run_child(work):
    """Run `work` in a child after fork(); return its exit status, or minus the signal."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = work() or 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def free_pages_of_pool():
    """Return the pages of 2 MiB that nobody uses."""
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
    try:
        return int(pathlib.Path(path).read_text(encoding="ascii"))
    except OSError:
        return 0
