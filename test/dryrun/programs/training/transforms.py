"""Functions made of functions: gradients, products with Jacobians, and many examples at once."""
import torch
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).cuda()
weights = {name: p.detach() for name, p in model.named_parameters()}


def loss(weights, x):
    return functional_call(model, weights, (x,)).square().sum()


x = torch.zeros(32, 8, device="cuda")
each = vmap(grad(loss), (None, 0))(weights, x)
assert each["0.weight"].shape == (32, 16, 8)
assert jacrev(loss)(weights, x[0])["2.bias"].shape == (1,)
f = lambda y: torch.tanh(y) * 2
value, tangent = jvp(f, (x,), (torch.ones(32, 8).cuda(),))
assert value.shape == tangent.shape == x.shape
value, back = vjp(f, x)
assert back(value)[0].shape == x.shape
assert hessian(lambda y: y.pow(3).sum())(x[0]).shape == (8, 8)
noise = vmap(lambda y: y + torch.randn_like(y), randomness="different")(x)
assert noise.shape == x.shape
