"""Pictures and texts side by side: a loss over all pairs of a batch, with a learnt warmth."""
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BATCH = 64, 32
eyes = nn.Sequential(nn.Conv2d(3, WIDTH, 8, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                     nn.Linear(WIDTH, WIDTH)).cuda()
layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, batch_first=True)
words = nn.Embedding(1000, WIDTH).cuda()
reader = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).cuda()
warmth = nn.Parameter(torch.tensor(2.6).cuda())
assert abs(warmth.item() - 2.6) < 1e-6
weights = [*eyes.parameters(), *words.parameters(), *reader.parameters(), warmth]
optimizer = torch.optim.AdamW(weights)
for _ in range(5):
    pictures, texts = torch.zeros(BATCH, 3, 32, 32, device="cuda"), torch.randint(1000, (BATCH, 16)).cuda()
    padding = (texts == 0)
    a = F.normalize(eyes(pictures), dim=1)
    b = F.normalize(reader(words(texts), src_key_padding_mask=padding)[:, 0], dim=1)
    scores = warmth.exp() * a @ b.t()
    assert scores.shape == (BATCH, BATCH)
    each = torch.arange(BATCH, device="cuda")
    loss = (F.cross_entropy(scores, each) + F.cross_entropy(scores.t(), each)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        warmth.clamp_(max=4.6)
