"""PyTorch Geometric: messages along edges, scattered to nodes; its sampler is the host's.

needs: torch_geometric
"""
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_mean_pool

data = [Data(x=torch.randn(50, 32), edge_index=torch.randint(50, (2, 200)), y=torch.tensor([i % 4]))
        for i in range(32)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(32, 64), GATConv(64, 16, heads=4)
        self.head = torch.nn.Linear(64, 4)

    def forward(self, batch):
        x = self.first(batch.x, batch.edge_index).relu()
        x = self.second(x, batch.edge_index).relu()
        return self.head(global_mean_pool(x, batch.batch, size=batch.num_graphs))


model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for batch in DataLoader(data, batch_size=8):
        batch = batch.to("cuda")
        torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
        optimizer.step()
        optimizer.zero_grad()
