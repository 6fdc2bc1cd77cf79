"""A program that works on the host for longer than the patience before its first allocation.

options: --patience 6
"""
import time

import torch

torch.cuda.init()
time.sleep(9)
model = torch.nn.Linear(1024, 1024, device="cuda")
model(torch.ones(8, 1024, device="cuda")).sum().backward()
