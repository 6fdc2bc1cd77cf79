# SPDX-License-Identifier: Apache-2.0
"""What enable_pinned() refuses, in one clear line, and what is taken from the environment."""
import os
import tempfile

from pinned_here import _pinned, enable_pinned, load_shim, pinned, pinned_clear, pinned_stats, \
    raises, torch
from drystone._errors import Error

cuda, torch.version.cuda = torch.version.cuda, None
raises(Error, "built without CUDA", enable_pinned)
torch.version.cuda = cuda
raises(Error, "enable_pinned() first", pinned_clear)
raises(Error, "enable_pinned() first", pinned_stats)
for name, value in (("block_size_mb", 0), ("block_size_mb", 1 << 30), ("block_size_mb", 1.5),
                    ("block_size_mb", True), ("block_count", -1), ("block_count", 4097),
                    ("threshold_mb", 1025), ("threshold_mb", "4"), ("node", 1024), ("node", -3),
                    ("device", 1), ("device", -1)):
    raises(Error, f"{name}: ", enable_pinned, **{name: value})
raises(Error, "block_size_mb: a power of two of 2 to 8192", enable_pinned, 1000, mode="buddy")
raises(Error, "mode: 'fit' or 'buddy' is expected, not 'best'", enable_pinned, mode="best")
raises(Error, "node: 'gpu', a number or None is expected, not 'near'", enable_pinned, node="near")
for text in ("many", "1.5", "-4", "²"):
    os.environ["BUDDY_BLOCK_SIZE_MB"] = text
    raises(Error, f"$BUDDY_BLOCK_SIZE_MB: a whole number is expected, not {text!r}", enable_pinned)
os.environ["BUDDY_BLOCK_SIZE_MB"] = "0"
raises(Error, "$BUDDY_BLOCK_SIZE_MB: 1 to", enable_pinned)
os.environ.update(BUDDY_BLOCK_SIZE_MB="8", BUDDY_BLOCK_COUNT="2", BUDDY_THRESHOLD_MB="1")
assert _pinned._read_options("buddy", None, None, None) == (
    "mode:buddy,in_background:True,threshold_kb:1024,block_count:0,block_mb:8", 16 << 20)
assert _pinned._read_options("fit", 4, 1, 2)[1] == 4 << 20
del os.environ["BUDDY_BLOCK_SIZE_MB"]
assert _pinned._read_options("fit", None, None, None)[1] == 2 << 30
del os.environ["BUDDY_BLOCK_COUNT"]
assert _pinned._read_options("fit", 512, None, None)[1] == 4 << 30
assert _pinned._read_options("buddy", None, None, None)[1] in (0, 1 << 30)


# More than there is room for: a block is refused; of a sum, as much as fits, and a word about it.
assert torch.ones(1, device="cuda").device.index == 0
shim = _pinned._declare(load_shim())
said = shim.dry_shim_enable_pinned(b"mode:buddy,block_mb:128,block_count:0,budget_mb:64", 1 << 30,
                                   0, -2, None)
assert said == b"drystone: no pinned memory: a block has 128 MiB, and the machine has room for " \
    b"64 MiB", said
with tempfile.TemporaryFile() as file:
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    said = shim.dry_shim_enable_pinned(b"mode:fit,block_count:0,budget_mb:64", 1 << 30, 0, -2, None)
    os.dup2(kept, 2)
    file.seek(0)
    text = file.read().decode()
assert said is None, said
assert "1024 MiB of pinned memory were asked for ahead" in text, text
assert "64 MiB are pinned ahead" in text, text
assert pinned(100).is_pinned()
raises(torch.cuda.OutOfMemoryError, "no room for 134217728 bytes", pinned, 128 << 20)
pinned_clear()
