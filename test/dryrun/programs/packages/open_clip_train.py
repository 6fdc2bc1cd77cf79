"""OpenCLIP: towers for pictures and texts, and the loss that compares them all.

needs: open_clip
"""
import torch
from open_clip import ClipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

model = CLIP(64, CLIPVisionCfg(layers=2, width=64, head_width=32, patch_size=16, image_size=64),
             CLIPTextCfg(context_length=16, vocab_size=500, width=64, heads=2, layers=2)).cuda()
loss, optimizer = ClipLoss(), torch.optim.AdamW(model.parameters())
for _ in range(5):
    pictures, texts = torch.randn(8, 3, 64, 64).cuda(), torch.randint(500, (8, 16)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        result = loss(*model(pictures, texts))
    result.backward()
    optimizer.step()
    optimizer.zero_grad()
