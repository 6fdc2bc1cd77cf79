"""What comes each hundredth step only prints: nothing is unseen. The loader takes its time.

options: --patience 20
"""
import time

import torch
from torch.utils.data import DataLoader


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 8000

    def __getitem__(self, index):
        time.sleep(0.2)
        return torch.randn(64)


model = torch.nn.LSTM(64, 64, num_layers=2, dropout=0.5).cuda()  # torch itself asks for a seed
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    total = 0
    for number, x in enumerate(DataLoader(Slow(), batch_size=8)):
        loss = model(x.cuda())[0].square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
        if number % 100 == 0 and number > 0:
            print(f"{epoch} {number:5d} {total / 100:.3f}")
            total = 0
    with torch.no_grad():
        for x in DataLoader(Slow(), batch_size=8):
            model(x.cuda())
