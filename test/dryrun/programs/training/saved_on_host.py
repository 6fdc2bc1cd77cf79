"""What the backward pass needs is kept on the host meanwhile, or packed into fewer bits."""
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

layers = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU())
                               for _ in range(6))).cuda()


def held_by(way):
    x = torch.zeros(1024, 256, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    if way:
        with way:
            y = layers(x)
    else:
        y = layers(x)
    held = torch.cuda.memory_allocated() - before
    y.sum().backward()
    layers.zero_grad()
    return held


held_by(None)
plain = held_by(None)
host = held_by(save_on_cpu(pin_memory=True))
half = held_by(saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()))
assert plain >= 11 * 1024 * 256 * 4
assert host <= 2 * 1024 * 256 * 4, (plain, host)
assert host < half < plain, (plain, half, host)
