"""Somebody asks whether there is a torch before anybody imports it, as other packages do."""
import importlib.util

assert importlib.util.find_spec("torch")
import torch  # noqa: E402

assert torch.ones(3).cuda().sum().item() == 0
