"""A captured step, replayed; warm-up on a side stream, as the manual says."""
import torch

model = torch.nn.Linear(512, 512).cuda()
x = torch.randn(64, 512, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        model(x).sum().backward()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
model.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    y = model(x).sum()
    y.backward()
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
