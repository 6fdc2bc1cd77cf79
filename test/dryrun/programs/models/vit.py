"""A transformer for pictures: patches, a token of the class, PyTorch's own encoder layers."""
import torch
from torch import nn

WIDTH = 96


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 8, stride=8)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.zeros(1, 65, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.size(0), -1, -1), x), 1) + self.places
        return self.head(self.encoder(x)[:, 0])


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for _ in range(5):
    x, labels = torch.randn(8, 3, 64, 64).cuda(), torch.randint(10, (8,)).cuda()
    with torch.autocast("cuda", torch.float16):
        y = model(x)
        loss = nn.functional.cross_entropy(y, labels, label_smoothing=0.1)
    assert y.shape == (8, 10) and y.dtype == torch.float16
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
model.eval()
with torch.no_grad():
    assert model(x).argmax(1).shape == (8,)  # by the fused path of the encoder
