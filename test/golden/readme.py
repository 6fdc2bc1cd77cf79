#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md, doc/tour.md and doc/guide say that commands print, beside what they print:
readme.py TOOL MAKE_CASES [--torch] [PAGE...]

Blocks of a page, by the words behind the fence:

    console         each `$ COMMAND` runs in bash, as in the root of a clone, and prints what
                    follows. A line `...` stands for any lines. A page's commands share a folder.
    console torch   the same with --torch alone: it needs a PyTorch, $DRY_TEST_TORCH. Seconds
                    and blanks are not compared.
    python torch    runs to its end under `drystone dry-run`, with --torch alone
    python          compiles
    sh              is not run: it needs a GPU, root or a network. Its options are in the help.

oom.pickle is a labelled program that is fragmented, spike.pickle and leak.pickle are others;
run.pickle is what `drystone demo --capacity 24GiB` records; train.log ends with an OOM. A
notebook's cells run as one block of "python torch". No line that a command prints or that a
block has is wider than 80 columns.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
tool, make_cases = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
is_torch = "--torch" in sys.argv
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
WIDTH = 80
LOG = (
    "step 7\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a "
    "total capacity of 15.77 GiB of which 626.00 MiB is free. Process 4711 has 15.15 GiB memory in "
    "use. Of the allocated memory 10.14 GiB is allocated by PyTorch, and 4.64 GiB is reserved by "
    "PyTorch but unallocated.\n")
SKIPPED = 77


def environment():
    given = {key: value for key, value in os.environ.items()
             if key not in ("TORCH_USE_RTLD_GLOBAL", "LD_PRELOAD", "COLUMNS")}
    given.update(PATH=f"{tool.parent}:{os.environ['PATH']}", PYTHONWARNINGS="ignore",
                 OMP_NUM_THREADS="1", DRYSTONE=str(tool), PYTHONDONTWRITEBYTECODE="1")
    if is_torch:
        given["PYTHONPATH"] = f"{os.environ['DRY_TEST_TORCH']}:{root / 'python'}"
    return given


def is_alike(sample, printed):
    if is_torch:
        sample, printed = map(mask, (sample, printed))
    pattern = re.escape(sample).replace(re.escape("...\n"), "(?:.*\n)*")
    return re.fullmatch(pattern, printed) is not None


def mask(text):
    """Leave out seconds, and the width of their column."""
    text = re.sub(r"\d+\.\d(?=\n| s\b)", "S", text)
    return re.sub(r"[ ]+", " ", text)


def run(line):
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=environment(), check=False)


def check_console(body):
    assert COMMAND.sub("", body) == "", f"no command prints {COMMAND.sub('', body)!r}"
    for line, sample in COMMAND.findall(body):
        done = run(line)
        wide = [text for text in done.stdout.splitlines() if len(text) > WIDTH]
        if done.returncode not in (0, 1) or not is_alike(sample, done.stdout):
            yield f"$ {line}\nexit {done.returncode}, prints:\n{done.stdout}{done.stderr}"
        if wide:
            yield f"$ {line}\nis wider than {WIDTH} columns:\n" + "\n".join(wide)


def check_python(body):
    pathlib.Path("block.py").write_text(body)
    done = run("drystone dry-run --json -- python3 block.py")
    if done.returncode != 0:
        yield f"{body}exit {done.returncode}\n{done.stderr}"


def check_options(body):
    """Every option of ours before `--` is in the command's help."""
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "drystone" not in words:
            continue
        words = words[words.index("drystone") + 1:]
        words = words[:words.index("--")] if "--" in words else words
        known = run(f"drystone help {shlex.quote(words[0])}").stdout
        for word in words[1:]:
            name = re.match(r"--?[a-z][\w-]*", word)
            if name and not re.search(rf"(?<![\w-]){name[0]}(?![\w-])", known):
                yield f"{line}\ndrystone {words[0]} has no {name[0]}"


def join_cells(text):
    return "\n".join("".join(cell["source"]) + "\n" for cell in json.loads(text)["cells"]
                     if cell["cell_type"] == "code")


def check(page):
    text = (root / page).read_text()
    if page.endswith(".ipynb"):
        yield from check_python(join_cells(text)) if is_torch else ()
        return
    for words, body in BLOCK.findall(text):
        wide = [line for line in body.splitlines() if len(line) > WIDTH]
        yield from (f"wider than {WIDTH} columns: {line}" for line in wide)
        if words.endswith(" torch") != is_torch:
            continue
        if words.startswith("console"):
            yield from check_console(body)
        elif words == "python torch":
            yield from check_python(body)
        elif words == "python":
            compile(body, page, "exec")
        elif words == "sh":
            yield from check_options(body)
        else:
            assert words in ("text", "yaml"), f"what is a block of '{words}'?"


def main():
    pages = [word for word in sys.argv[3:] if word != "--torch"] or sorted(
        str(path.relative_to(root)) for path in
        [root / "README.md", root / "doc/tour.md", *root.glob("doc/guide/*.[mi]*")])
    if is_torch and not pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere",
                                     "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        return SKIPPED
    failed = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            subprocess.run([make_cases, "."], check=True, stdout=subprocess.DEVNULL)
            os.rename("fragmentation-pinned.pickle", "oom.pickle")
            os.symlink(root / "example", "example")
            pathlib.Path("train.log").write_text(LOG)
            run("drystone demo --capacity 24GiB --output run.pickle")
            for finding in check(page):
                failed += 1
                print(f"{page}: {finding}\n")
            os.chdir(root)
    print(f"{len(pages)} pages, {failed} findings")
    return failed != 0


sys.exit(main())
