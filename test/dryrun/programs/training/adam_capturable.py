"""Adam that counts its steps on the device, so that a graph can hold a whole step."""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
x = torch.randn(32, 256, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    optimizer.step()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    step()
torch.cuda.current_stream().wait_stream(side)
assert all(state["step"].is_cuda for state in optimizer.state.values())
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
reserved = torch.cuda.memory_reserved()
for _ in range(5):
    graph.replay()
assert torch.cuda.memory_reserved() == reserved
