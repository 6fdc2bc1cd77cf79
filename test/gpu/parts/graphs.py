# SPDX-License-Identifier: Apache-2.0
"""A training step, captured and replayed: its losses are those of the steps without a graph."""
import part

WARM = 3


def make(torch):
    """Return a step that gives its loss as a tensor; what it learns is the same in each call."""
    torch.manual_seed(0)
    width = 1024
    model = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                torch.nn.Linear(4 * width, width)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x, y = (torch.randn(256, width).cuda() for _ in range(2))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def without(torch, count):
    step = make(torch)
    return [step().item() for _ in range(count)]


def captured(torch, count):
    step, side, graph = make(torch), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        losses = [step().item() for _ in range(WARM)]
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        loss = step()
    while len(losses) < count:
        graph.replay()
        losses.append(loss.item())
    return losses


def main():
    given = part.begin(__doc__)
    import torch
    count = 6 if given.quick else 50
    eager, replayed = without(torch, count), captured(torch, count)
    apart = max(abs(a - b) / max(abs(a), 1e-9) for a, b in zip(eager, replayed))
    part.put(allocator=given.allocator, eager=eager, replayed=replayed, apart=apart,
             reserved=torch.cuda.max_memory_reserved())
    assert apart < 1e-3, f"a replayed loss is another: {apart:.2g} apart"
    part.say(f"{count} losses, {apart:.1g} apart; "
             f"{torch.cuda.max_memory_reserved() / part.MIB:.0f} MiB reserved")


main()
