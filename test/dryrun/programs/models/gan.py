"""Two nets against each other, with an optimiser each, that step one after the other."""
import torch
from torch import nn

maker = nn.Sequential(nn.ConvTranspose2d(32, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
                      nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                      nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()).cuda()
judge = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1),
                      nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * 16, 1)).cuda()
make_steps, judge_steps = (torch.optim.Adam(m.parameters(), betas=(0.5, 0.999))
                           for m in (maker, judge))
right, wrong = torch.ones(16, 1).cuda(), torch.zeros(16, 1).cuda()
loss = nn.BCEWithLogitsLoss()
for _ in range(4):
    real = torch.randn(16, 3, 16, 16, device="cuda")
    made = maker(torch.randn(16, 32, 1, 1, device="cuda"))
    assert made.shape == real.shape
    judge_steps.zero_grad()
    (loss(judge(real), right) + loss(judge(made.detach()), wrong)).backward()
    assert maker[0].weight.grad is None
    judge_steps.step()
    make_steps.zero_grad()
    loss(judge(made), right).backward()
    make_steps.step()
    make_steps.zero_grad()
