#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write doc/completions/ from the command's own help: make_completions.py [--check] TOOL

With --check nothing is written: the exit status says whether the files are current.
"""
import pathlib
import re
import subprocess
import sys

OUT = pathlib.Path(__file__).resolve().parent.parent / "doc" / "completions"
# Words that an option takes, where it is not a number, a size or a free text.
CHOICES = {
    "--annotate": "github gitlab",
    "--at": "oom peak end",
    "--by": "line function module stack category size step",
    "--for": "training inference cpu",
    "--goal": "fit peak stable",
    "--method": "one-level nested none block every sqrt greedy revolve",
    "--without": "expandable gc split",
    "--place": "torch paged offline",
    "--format": "perfetto folded sqlite csv json pickle",
    "--attention": "flash eager eager-fp32",
    "--checkpointing": "none selective full every sqrt",
    "--optimizer": "adamw adam amsgrad sgd momentum adamw-8bit adafactor adagrad rmsprop "
                   "lion muon",
    "--precision": "fp32 tf32 amp bf16 mixed megatron",
    "--malloc": "auto jemalloc tcmalloc mimalloc glibc keep",
    "--membind": "prefer strict",
    "--node": "auto none gpu:0 gpu:1 0 1",
    "--only": "pages malloc",
    "--omp-threads": "auto keep",
    "--profile": "balanced throughput many-workers",
    "--thp": "auto always advised never keep",
}
# Where a command means something else by an option of that name; "": numbers or free text.
OF_COMMANDS = {
    "diff": {"--by": "line function module category size"},
    "live": {"--at-used": "80% 90% 95%", "--for": ""},
    "sweep": {"--place": "torch paged"},
}
FILES = {"FILE", "OUT"}
TEXT_COLUMN = 26  # where tool/base/options.c begins the text of an option


def help_of(tool, *words):
    return subprocess.run([tool, "help", *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def short(text):
    """The first clause of a help text, for one line beside an option."""
    text = re.split(r";| \(", " ".join(text.split()))[0].strip().replace(": ", " - ")
    return text if len(text) <= 60 else text[:57].rsplit(" ", 1)[0] + "..."


def quote(text, apostrophe):
    """A text between apostrophes, with a shell's own word for one of its own."""
    return "'" + text.replace("'", apostrophe) + "'"


def quote_posix(text):
    return quote(text, "'\\''")


def quote_fish(text):
    return quote(text.replace("\\", "\\\\"), "\\'")


def choices(command, name):
    return OF_COMMANDS.get(command, {}).get(name, CHOICES.get(name, ""))


def read_commands(tool):
    section = help_of(tool).split("commands:\n")[1].split("\n\n")[0]
    return dict(re.match(r"  (\S+)\s+(.*)", line).groups() for line in section.splitlines())


def read_options(tool, command):
    """(letter or '', '--name', argument or '', text) of each option of a command."""
    section = help_of(tool, command).split("options:\n")[1].split("\n\n")[0]
    options = []
    for line in section.splitlines():
        ends = line[TEXT_COLUMN - 1:TEXT_COLUMN] == " "  # else the text begins below
        head, text = (line[:TEXT_COLUMN], line[TEXT_COLUMN:]) if ends else (line, "")
        found = re.match(r"  (?:(-\w), |    )(--[\w-]+)(?: (\S+))? *$", head)
        if found:
            options.append([found[1] or "", found[2], found[3] or "", text])
        elif head.strip():
            sys.exit(f"{command}: an option and its text cannot be told apart: {line}")
        else:
            options[-1][3] += " " + text
    return options


def bash(commands, options):
    words = " ".join(commands)
    cases = "\n".join(
        f"        {name}) options=\"{' '.join(o[1] for o in options[name])}\" ;;"
        for name in commands if name != "help")
    forms = {}  # which words an option takes -> "COMMAND OPTION", for each that takes them
    for command, rows in options.items():
        for letter, name, argument, _ in rows:
            if argument and argument not in FILES:
                forms.setdefault(choices(command, name), []).extend(
                    f'"{command} {form}"' for form in (letter, name) if form)
    arguments = "".join(
        f"        {' | '.join(those)})\n            "
        + (f"mapfile -t COMPREPLY < <(compgen -W \"{taken}\" -- \"$word\"); " if taken else "")
        + "return ;;\n" for taken, those in sorted(forms.items(), reverse=True))
    return f"""# bash completion for drystone(1); made by scripts/make_completions.py

_drystone()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command=${{COMP_WORDS[1]}} options="--help"
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "{words} --help --version" -- "$word")
        return
    fi
    case "$command $previous" in
        "help help") mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$word"); return ;;
{arguments}    esac
    case $command in
{cases}
    esac
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}}
complete -o filenames -F _drystone drystone
"""


def zsh_option(command, letter, name, argument, text):
    spec = "[" + short(text).replace("[", "(").replace("]", ")") + "]"
    if argument in FILES:
        spec += ":file:_files"
    elif choices(command, name):
        spec += f":word:({choices(command, name)})"
    elif argument:
        spec += f":{argument.lower()}:"
    if letter:
        return f"'*'{{{letter},{name}}}{quote_posix(spec)}"
    return quote_posix(f"*{name}{spec}")


def zsh(commands, options):
    names = "\n".join(f"    {quote_posix(f'{name}:{short(text)}')}" for name, text in commands.items())
    cases = ""
    for name in commands:
        if name == "help":
            continue
        rows = " \\\n        ".join(zsh_option(name, *row) for row in options[name])
        cases += f"    {name})\n      _arguments {rows} \\\n        '*:file:_files' ;;\n"
    return f"""#compdef drystone
# zsh completion for drystone(1); made by scripts/make_completions.py

_drystone_commands() {{
  local -a commands=(
{names}
  )
  _describe command commands
}}

_arguments -C \\
  '(- *)--help[what there is]' \\
  '(- *)--version[the version of this program]' \\
  '1:command:_drystone_commands' \\
  '*::argument:->arguments'

if [[ $state == arguments ]]; then
  case $words[1] in
{cases}    help)
      _drystone_commands ;;
  esac
fi
"""


def fish(commands, options):
    lines = ["# fish completion for drystone(1); made by scripts/make_completions.py", "",
             f"set -l commands {' '.join(commands)}"]
    none = 'complete -c drystone -n "not __fish_seen_subcommand_from $commands"'
    lines.append(f"{none} -f")
    lines += [f"{none} -a {name} -d {quote_fish(short(text))}" for name, text in commands.items()]
    lines.append(f"{none} -l version -d 'the version of this program'")
    lines.append(f'complete -c drystone -n "__fish_seen_subcommand_from help" -f -a '
                 f"'{' '.join(commands)}'")
    for command in commands:
        for letter, name, argument, text in options.get(command, []):
            line = f'complete -c drystone -n "__fish_seen_subcommand_from {command}"'
            line += f" -s {letter[1]}" if letter else ""
            line += f" -l {name[2:]}"
            if argument in FILES:
                line += " -r"
            elif choices(command, name):
                line += f" -x -a '{choices(command, name)}'"
            elif argument:
                line += " -x"
            lines.append(f"{line} -d {quote_fish(short(text))}")
    return "\n".join(lines) + "\n"


def main():
    tool = sys.argv[-1]
    commands = read_commands(tool)
    options = {name: read_options(tool, name) for name in commands if name != "help"}
    stale = 0
    for file, make in (("drystone.bash", bash), ("_drystone", zsh), ("drystone.fish", fish)):
        text = make(commands, options)
        if "--check" not in sys.argv:
            (OUT / file).write_text(text)
        elif (OUT / file).read_text() != text:
            stale += 1
            print(f"{OUT / file} is not current: run scripts/make_completions.py TOOL")
    sys.exit(stale != 0)


if __name__ == "__main__":
    main()
