"""fp16 with a GradScaler, which reads whether a gradient overflowed."""
import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for _ in range(8):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(64, 512, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
