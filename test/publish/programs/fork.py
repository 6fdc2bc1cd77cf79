# SPDX-License-Identifier: Apache-2.0
"""Children of a fork, DataLoader's workers among them, leave the parent's page alone."""
import os
import sys

import drystone.torch as dt
import here
import torch

page = dt.publish(interval=0.01, folder=here.PAGES)
on_device = torch.ones(1 << 20, device="cuda")


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, at):
        return torch.full((1000,), float(at)), len(os.listdir(here.PAGES))


for batch, pages in torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2):
    assert set(pages.tolist()) == {1}, pages
for turn in range(40):  # the thread writes meanwhile
    child = os.fork()
    if child == 0:
        page.stop()
        dt._publish._stop()  # as at an exit
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if child == 0:
    mine = dt.publish(folder=here.PAGES)
    assert mine is not page and len(os.listdir(here.PAGES)) == 2
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert os.listdir(here.PAGES) == [page.file]
assert "torch._inductor" not in sys.modules, "a walk imports it"
here.stop("forked", here.facts(torch, 0))
