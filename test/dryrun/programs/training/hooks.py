"""An optimiser that steps inside the backward pass: no two gradients live at the same time."""
import torch

WIDTH, COUNT = 1024, 8


def peak_of(inside):
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False)
                                  for _ in range(COUNT))).cuda()
    seen = []
    model[0].register_forward_hook(lambda module, given, made: seen.append(made.shape))
    model[1].register_full_backward_hook(lambda module, given, made: seen.append(made[0].shape))

    def step(p):
        p.data.add_(p.grad, alpha=-0.1)
        p.grad = None

    if inside:
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(step)
    x = torch.zeros(8, WIDTH, device="cuda", requires_grad=True)
    x.register_hook(lambda gradient: gradient * 2)
    torch.cuda.reset_peak_memory_stats()
    model(x).sum().backward()
    assert len(seen) == 2
    return torch.cuda.max_memory_allocated()


peak_of(True)
inside, outside = peak_of(True), peak_of(False)
assert outside - inside >= (COUNT - 3) * WIDTH * WIDTH * 4, (inside, outside)
