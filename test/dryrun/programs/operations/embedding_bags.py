"""Bags of embeddings: sums, means and maxima over rows, weighted, sparse."""
import torch

words = torch.randint(1000, (64,)).cuda()
begins = torch.arange(0, 64, 8).cuda()
for mode in ("sum", "mean", "max"):
    for sparse in (False, True):
        if mode == "max" and sparse:
            continue
        bag = torch.nn.EmbeddingBag(1000, 32, mode=mode, sparse=sparse).cuda()
        y = bag(words, begins)
        assert y.shape == (8, 32)
        y.sum().backward()
        assert bag.weight.grad.is_sparse == sparse
bag = torch.nn.EmbeddingBag(1000, 32, mode="sum").cuda()
weights = torch.ones(64, device="cuda", requires_grad=True)
bag(words, begins, per_sample_weights=weights).sum().backward()
assert weights.grad.shape == (64,)
assert bag(words.view(8, 8)).shape == (8, 32)
clipped = torch.nn.Embedding(1000, 32, max_norm=1.0, scale_grad_by_freq=True).cuda()
assert clipped(words).shape == (64, 32)
