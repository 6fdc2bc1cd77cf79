# SPDX-License-Identifier: Apache-2.0
"""A program in a terminal, driven in tmux as a person would."""
import itertools
import os
import shutil
import subprocess
import sys
import time

WAIT_SECONDS = 60
numbers = itertools.count()  # a server that ends must not meet the next one


def skip_without_terminals():
    """End the test as skipped where no program can have a terminal: without tmux, or without ptys."""
    if not shutil.which("tmux"):
        print("SKIPPED: there is no tmux to drive a terminal in")
        sys.exit(77)
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        print(f"SKIPPED: there are no pseudo-terminals here: {error.strerror}")
        sys.exit(77)


class Terminal:
    """One program in a tmux of its own."""

    def __init__(self, folder, words, width=80, height=24, term="screen", lang="C.UTF-8"):
        self.tmux = ["tmux", "-u", "-S", str(folder / f"tmux{next(numbers)}"), "-f", "/dev/null"]
        command = " ".join(f"'{word}'" for word in words)
        environment = {**os.environ, "LC_ALL": lang}
        self.run("new-session", "-d", "-x", str(width), "-y", str(height),
                 f"env TERM={term} LC_ALL={lang} {command}; echo ended $?; sleep 600",
                 env=environment)

    def run(self, *words, **more):
        return subprocess.run([*self.tmux, *words], check=True, text=True,
                              stdout=subprocess.PIPE, **more).stdout

    def __enter__(self):
        return self

    def __exit__(self, *what):
        subprocess.run([*self.tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)

    def screen(self):
        return self.run("capture-pane", "-p").split("\n")

    def press(self, *keys):
        self.run("send-keys", *keys)

    def wait_for(self, *texts):
        """The screen once it has all the texts."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            screen = self.screen()
            if all(any(text in line for line in screen) for text in texts):
                return screen
            time.sleep(0.05)
        raise AssertionError((texts, self.screen()))
