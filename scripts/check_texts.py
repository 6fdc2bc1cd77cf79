#!/usr/bin/env python3
"""Fail on a text of the library that names an option of the tool: check_texts.py ROOT

Programs without the tool show these texts too. An option belongs to the program that the text
names before it; of other programs, options may be named.
"""
import pathlib
import re
import sys

from rulers import COMMENT, c_files

OTHERS = re.compile(r"\b(?:ComfyUI|Dask|SGLang|docker|kubectl|ld\.so|llama-server|llama\.cpp|nvidia-smi|"
                    r"prlimit|rocm-smi|sacct|sbatch|sglang\.launch_server|systemctl|text-generation-launcher|"
                    r"trtexec|trtllm-build|vLLM|vllm) ")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OURS = re.compile(r"\bdrystone [a-z]+ (?:.* )?--?\w")
STRING = r'"(?:\\.|[^"\\\n])*"'
TEXT = re.compile(STRING + r"(?:\s*(?:PRI\w+\s*)?" + STRING + ")*")


def texts(code):
    """(line, text) of each literal; literals that the compiler joins are one."""
    code = COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else
                       "\n" * found[0].count("\n"), code)
    for found in TEXT.finditer(code):
        text = "".join(part[1:-1] for part in re.findall(STRING, found[0]))
        yield code.count("\n", 0, found.start()) + 1, text


def named_option(text):
    ours = OURS.search(text)
    option = OPTION.search(text)
    if ours or (option and not OTHERS.search(text, 0, option.start())):
        return (ours or option)[0]
    return None


root = pathlib.Path(sys.argv[1])
bad = 0
for path in c_files(root / "src"):
    for line, text in texts(path.read_text()):
        named = named_option(text)
        if named:
            print(f"{path.relative_to(root)}:{line}: names {named}, which is the tool's to say")
            bad += 1
sys.exit(bad > 0)
