"""PyTorch's process that compiles asks for the card's properties and is ended: that loses nothing."""
import pathlib
import subprocess
import sys
import tempfile

import torch

torch.empty(1 << 20, device="cuda")
with tempfile.TemporaryDirectory() as folder:
    worker = pathlib.Path(folder, "torch/_inductor/compile_worker/__main__.py")
    worker.parent.mkdir(parents=True)
    worker.write_text("import time, torch\ntorch.cuda.init()\nprint(1, flush=True)\ntime.sleep(99)\n")
    with subprocess.Popen([sys.executable, worker], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.terminate()
