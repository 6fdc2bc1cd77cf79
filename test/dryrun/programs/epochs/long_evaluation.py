"""Each epoch has a long evaluation; copies that tracing makes keep no tensor. It ends by itself."""
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(100000, 64))
seen = {"training": 0, "evaluation": 0, "epochs": 0}


def main():
    model = torch.nn.Linear(64, 1 << 16).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(9):
        for (x,) in DataLoader(data, batch_size=8):
            kept = model(x.cuda())
            kept.mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            seen["training"] += 1
        del kept, x
        before = torch.cuda.memory_allocated()
        for (x,) in DataLoader(data, batch_size=8, num_workers=1):
            with torch.no_grad():
                model(x.cuda())
            seen["evaluation"] += 1
        del x
        assert torch.cuda.memory_allocated() == before == model.weight.nbytes + model.bias.nbytes
        seen["epochs"] += 1


main()
assert 21 <= seen["training"] < 100 and 9 * 21 <= seen["evaluation"] < 1000, seen
assert seen["epochs"] == 9, seen
