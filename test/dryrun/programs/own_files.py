"""The best checkpoint of an earlier run stays, and the program sees its own.

before: kept
"""
import json
import os
import pathlib
import shutil
import sys

import torch

best = pathlib.Path(sys.argv[1])
before = best.stat()
best.chmod(0o600)
os.utime(best, (0, 0))
assert (before.st_mode, before.st_mtime) == (best.stat().st_mode, best.stat().st_mtime)
model = torch.nn.Linear(64, 64).cuda()
torch.save(model.state_dict(), best)
assert torch.load(best)["weight"].shape == (64, 64)
torch.save(model.state_dict(), best.with_suffix(".new"))
os.replace(best.with_suffix(".new"), best)
assert torch.load(str(best))["weight"].shape == (64, 64)
with open(best, "a", encoding="utf-8") as out:
    out.write("more\n")
shutil.copy2(__file__, best)
best.write_text(json.dumps({"loss": 0}), encoding="utf-8")
assert json.loads(best.read_text(encoding="utf-8")) == {"loss": 0}
best.rename(best.with_suffix(".old"))
os.remove(best)
shutil.rmtree(best.parent)
