"""Random numbers of the device: states are saved, put back and move on; drawing has its shape."""
import torch

torch.cuda.manual_seed(7)
assert torch.cuda.initial_seed() == 7
state = torch.cuda.get_rng_state()
dropout = torch.nn.Dropout(0.5)
x = torch.zeros(1000, device="cuda", requires_grad=True)
dropout(x).sum().backward()
assert not torch.equal(torch.cuda.get_rng_state(), state)
torch.cuda.set_rng_state(state)
assert torch.equal(torch.cuda.get_rng_state(), state)
with torch.random.fork_rng(devices=[0]):
    torch.randn(10, device="cuda")
assert torch.equal(torch.cuda.get_rng_state(), state)
chances = torch.ones(4, 10).cuda()
assert torch.multinomial(chances, 3).shape == (4, 3)
assert torch.multinomial(chances, 20, replacement=True).shape == (4, 20)
assert torch.randperm(1000, device="cuda").shape == (1000,)
assert torch.bernoulli(chances).shape == torch.poisson(chances).shape == (4, 10)
own = torch.Generator("cuda").manual_seed(3)
assert torch.randn(5, device="cuda", generator=own).shape == (5,)
normal = torch.distributions.Normal(torch.zeros(3, device="cuda"), torch.ones(3).cuda(),
                                    validate_args=False)
assert normal.rsample((8,)).shape == (8, 3)
