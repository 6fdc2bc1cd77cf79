"""With --write a program changes what it likes.

options: --write
before: changed
"""
import pathlib
import sys

import torch

best = pathlib.Path(sys.argv[1])
torch.save(torch.zeros(4, device="cuda"), best)
