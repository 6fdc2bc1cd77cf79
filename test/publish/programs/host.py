# SPDX-License-Identifier: Apache-2.0
"""A program that uses no GPU: its page has no sources."""
import os

import here
import torch

if os.environ["TEST_WAY"] == "call":
    import drystone.torch as dt

    page = dt.publish(interval=0.01, folder=here.PAGES)
torch.ones(1000).sum()
here.stop("host")
assert not torch.cuda.is_initialized(), "publishing has initialized CUDA"
if os.environ.get("TEST_CPU") is None:  # a dry run is of a program that uses a GPU
    torch.ones(1, device="cuda")
