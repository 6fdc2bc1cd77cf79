"""AdamW by tensor lists, fused and one by one: equal states, unequal temporary memory."""
import torch


def peak_of_step(**kind):
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **kind)
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    states = sum(t.numel() for state in optimizer.state.values() for t in state.values()
                 if t.dim())
    assert states == 2 * sum(p.numel() for p in model.parameters())
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()
    return torch.cuda.max_memory_allocated() - before


lists, fused, single = (peak_of_step(**{kind: True}) if kind else peak_of_step(foreach=False)
                        for kind in ("foreach", "fused", ""))
assert lists > single > fused, (lists, single, fused)
assert lists >= 4 * (512 * 512 * 4)
