"""Two workers that pin what they load."""
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.randn(64, 3, 32, 32), torch.arange(64))
    model = torch.nn.Linear(3 * 32 * 32, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for x, y in DataLoader(data, batch_size=16, num_workers=2, pin_memory=True):
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            torch.nn.functional.cross_entropy(model(x.flatten(1)), y % 10).backward()
            optimizer.step()
            optimizer.zero_grad()
