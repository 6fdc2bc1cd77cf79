#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option that a command's help names is completed: completions.py TOOL

What make_completions.py reads out of the help is not trusted here: names are taken from
the beginnings of the lines alone, and looked up in the three files as they are kept.
"""
import collections
import importlib
import pathlib
import re
import shlex
import subprocess
import sys

tool = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(__file__).resolve().parents[2] / "doc" / "completions"


def help_of(*words):
    return subprocess.run([tool, "help", *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def after(text, pattern, end):
    """What stands between a line that matches and the next end."""
    found = re.search(pattern, text, re.MULTILINE)
    return text[found.end():].split(end)[0] if found else ""


bash, zsh, fish = ((folder / name).read_text()
                   for name in ("drystone.bash", "_drystone", "drystone.fish"))
commands = re.findall(r"^  ([\w-]+) ", after(help_of(), r"^commands:", "\n\n"), re.MULTILINE)
commands.remove("help")
missing = []
count = 0
meanings = collections.defaultdict(lambda: collections.defaultdict(list))  # of a letter, of a name
for command in commands:
    listed = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: ([A-Z/]+)\b)?",
                        after(help_of(command), r"^options:", "\n\n"), re.MULTILINE)
    options = [(letter, name) for letter, name, _ in listed]
    for letter, name, argument in listed:
        meanings[f"--{name}"][argument].append(command)
        if letter:
            meanings[f"-{letter}"][name].append(command)
    in_bash = after(bash, rf"^ +{command}\) options=", ";;")
    in_zsh = after(zsh, rf"^    {command}\)$", ";;")
    in_fish = "\n".join(line for line in fish.splitlines()
                        if f'__fish_seen_subcommand_from {command}"' in line)
    for letter, name in options:
        count += 1
        places = {
            "bash": re.search(rf"--{name}[ \"]", in_bash),
            "zsh": re.search(rf"'\*'{{-{letter},--{name}}}'" if letter
                             else rf"'\*--{name}[\['=]", in_zsh),
            "fish": re.search(rf"{f'-s {letter} ' if letter else ''}-l {name} ", in_fish),
        }
        missing += [f"{command} --{name}: not in that of {shell}"
                    for shell, found in places.items() if not found]


def complete(*words):
    """What bash offers for the word after these."""
    script = (f'source {folder / "drystone.bash"}; COMP_WORDS=("$@" ""); COMP_CWORD=$#; _drystone; '
              'echo "${COMPREPLY[*]}"')
    return subprocess.run(["bash", "-c", script, "bash", "drystone", *words], check=True, text=True,
                          stdout=subprocess.PIPE, cwd=folder).stdout.split()


# One letter is of different options in different commands.
files = sorted(path.name for path in folder.iterdir())
for words, expected in ((("view", "-o"), files), (("explain", "--baseline"), files), (("replay", "-c"), []),
                        (("estimate", "--optimizer"), "adamw"), (("export", "-f"), "perfetto"),
                        (("estimate", "--checkpointing"), "none"), (("live", "--at-used"), "80%"),
                        (("diff", "--by"), "line"), (("sweep", "-p"), "torch")):
    offered = complete(*words)
    if sorted(offered) != expected and expected not in offered[:1]:
        missing.append(f"{' '.join(words)}: bash offers {offered}, expected {expected}")
# An apostrophe of a text stays within its quotes.
sys.path.insert(0, str(folder.parents[1] / "scripts"))
make = importlib.import_module("make_completions")
made_up = {"x": "a program's memory"}, {"x": [["", "--y", "N", "the user's own"], ["-z", "--zz", "", "it's"]]}
words = [word for line in make.zsh(*made_up).splitlines() if "'\\''" in line
         for word in shlex.split(line.rstrip("\\"))]
for text in ("x:a program's memory", "*--y[the user's own]:n:", "*{-z,--zz}[it's]"):
    if text not in words:
        missing.append(f"zsh: {text} is not one word among {words}")
rest = re.sub(r"'(\\.|[^'\\])*'", "", make.fish(*made_up))
if "'" in rest:
    missing.append(f"fish: a quote is open in {rest}")
# A node is a number; `run` takes words, too, that name one. `fit` runs one rank, and applies one
# change; `dry-run` takes several, and `pages` applies all.
missing += [f"{option} has several meanings: {dict(found)}" for option, found in meanings.items()
            if len(found) > 1 and option not in ("--apply", "--node", "--rank")]
if count < 100:
    missing.append(f"only {count} options read: the help has another form")
print("\n".join(missing) or f"{count} options of {len(commands)} commands")
sys.exit(missing != [])
