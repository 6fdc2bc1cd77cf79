# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: files that were there before the run stay as they were.

Losses are zeros here, so every step looks like the best, and a program would overwrite
its best checkpoint. A write to a file that is older than the run goes to a copy in the run's
own folder; later reads of the same path see the copy. Nothing older is removed or renamed. A link
that was there leads where it led.

This covers what Python opens, links, renames and removes, torch.save and safetensors. A path that a C
library opens by itself (HDF5, SQLite) and os.open() are not covered.
"""
import builtins
import hashlib
import io
import os
import shutil
import stat

COPY_MAX = 1 << 30  # maximal bytes of a file that is copied because a program adds to it


class Files:
    def __init__(self, folder, note):
        """Keep copies in `folder`; all processes of a run share it."""
        self.folder, self.note, self.kept = folder, note, []
        # the launcher made this link when the run began
        self.begin = os.lstat(os.path.dirname(os.path.abspath(__file__))).st_ctime
        self.open, self.remove = builtins.open, os.remove
        self.replace, self.rmtree, self.rmdir = os.replace, shutil.rmtree, os.rmdir

    # --- paths --------------------------------------------------------------------------------

    def find_copy(self, path):
        """Return where the copy of a path lies, or would lie."""
        real = os.path.realpath(os.fsdecode(path))
        key = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
        return os.path.join(self.folder, key, os.path.basename(real))

    def is_older(self, path):
        """Return whether a path is a file that was there when the run began."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(found.st_mode) and found.st_ctime < self.begin

    def is_older_link(self, path):
        return os.path.islink(path) and os.lstat(path).st_ctime < self.begin

    def keep(self, path):
        """Note a file that stays as it was, and return its copy's place."""
        copy, real = self.find_copy(path), os.path.realpath(os.fsdecode(path))
        if real not in self.kept:
            self.kept.append(real)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        return copy

    def to_read(self, path):
        copy = os.path.isdir(self.folder) and self.find_copy(path)
        return copy if copy and os.path.exists(copy) else path

    def to_write(self, path, is_added=False):
        """Return where a write goes; the copy has the file's bytes if the program adds to it."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return path  # a number, or an open file
        there = self.to_read(path)
        if there != path or not self.is_older(path):
            return there
        if is_added and os.stat(path).st_size > COPY_MAX:
            self.note(f"{os.fsdecode(path)} is written to: it is too large for a copy")
            return path
        copy = self.keep(path)
        if is_added:
            shutil.copyfile(path, copy)
        return copy

    # --- what a program calls -----------------------------------------------------------------

    def open_one(self, file, mode="r", *more, **named):
        if isinstance(file, (str, bytes, os.PathLike)) and isinstance(mode, str):
            if "w" in mode:
                file = self.to_write(file)
            elif "a" in mode or "+" in mode:
                file = self.to_write(file, is_added=True)
            elif "x" not in mode:
                file = self.to_read(file)
        return self.open(file, mode, *more, **named)

    def rename(self, source, target, **named):
        if named:
            return self.replace(source, target, **named)
        there, to = self.to_read(source), self.to_write(target)
        if there == source and self.is_older(source):
            self.keep(source)
            shutil.copyfile(source, to)
        elif there == source and to == target:
            self.replace(source, target)
        else:
            shutil.move(os.fspath(there), os.fspath(to))

    def unlink(self, path, **named):
        if not named and self.is_older_link(path):
            self.keep_link(path)
        elif named or not self.is_older(path):
            self.remove(path, **named)
        else:
            self.keep(path)

    def keep_link(self, path):
        name = os.path.abspath(os.fsdecode(path))
        if name not in self.kept:
            self.kept.append(name)

    def has_older(self, path):
        return any(self.is_older(os.path.join(folder, name))
                   for folder, _, names in os.walk(path) for name in names)

    def remove_tree(self, path, *more, **named):
        if self.has_older(path):
            self.keep(path)
        else:
            self.rmtree(path, *more, **named)

    def remove_folder(self, path, **named):
        if named or not self.has_older(path):
            self.rmdir(path, **named)

    def link(self, make, is_symbolic):
        """Make a link, but in place of an older name: it stays, or reads as what it would be."""
        def linked(source, target, *more, **named):
            if self.is_older_link(target):
                self.keep_link(target)
            elif not self.is_older(target):
                make(source, target, *more, **named)
            elif not is_symbolic:
                shutil.copyfile(self.to_read(source), self.keep(target))
        return linked

    def guard(self):
        builtins.open = io.open = self.open_one
        os.replace = os.rename = self.rename
        os.remove = os.unlink = self.unlink
        shutil.rmtree, os.rmdir = self.remove_tree, self.remove_folder
        os.symlink, os.link = self.link(os.symlink, True), self.link(os.link, False)
        for name in ("truncate", "chmod", "chown", "utime"):
            self.change_copy(name)
        for name in ("copystat", "copymode"):
            self.redirect(shutil, name)

    def change_copy(self, name):
        """Have a function that changes a file in place change a copy."""
        change = getattr(os, name)

        def changed(path, *more, **named):
            return change(self.to_write(path, is_added=True), *more, **named)

        setattr(os, name, changed)
        for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
            if change in able:
                able.add(changed)

    def redirect(self, module, name):
        """Have a function with a source and a target work on their copies, if there are any."""
        function = getattr(module, name)
        setattr(module, name, lambda source, target, **named: function(
            self.to_read(source), self.to_read(target), **named))

    def guard_torch(self, torch):
        save = torch.save

        def save_one(obj, f, *more, **named):
            return save(obj, self.to_write(f), *more, **named)

        torch.save = torch.serialization.save = save_one

    def guard_safetensors(self, module):
        write, read = getattr(module, "serialize_file", None), getattr(module, "safe_open", None)
        if not write or not read:
            self.note("safetensors writes over older files: this release is not known")
            return

        def serialize_file(tensors, filename, *more, **named):
            return write(tensors, self.to_write(filename), *more, **named)

        def safe_open(filename, *more, **named):
            return read(self.to_read(filename), *more, **named)

        module.serialize_file, module.safe_open = serialize_file, safe_open
