"""Blocks that another stream uses: their frees wait for events."""
import torch

side = torch.cuda.Stream()
for _ in range(50):
    x = torch.empty(1 << 20, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
    x.record_stream(side)
    del x, y
torch.cuda.synchronize()
