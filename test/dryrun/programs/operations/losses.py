"""Losses, from cross entropy with smoothed labels to CTC, by cuDNN's way and PyTorch's own."""
import torch
from torch.nn import functional as F

logits = torch.zeros(16, 10, device="cuda", requires_grad=True)
labels = torch.zeros(16, dtype=torch.long, device="cuda")
soft = torch.zeros(16, 10, device="cuda")
losses = [
    F.cross_entropy(logits, labels, label_smoothing=0.1, ignore_index=3),
    F.cross_entropy(logits, soft, weight=torch.ones(10, device="cuda")),
    F.nll_loss(F.log_softmax(logits, 1), labels), F.kl_div(logits, soft, reduction="batchmean"),
    F.binary_cross_entropy_with_logits(logits, soft), F.smooth_l1_loss(logits, soft),
    F.huber_loss(logits, soft), F.mse_loss(logits, soft), F.multi_margin_loss(logits, labels),
    F.triplet_margin_loss(logits, soft, soft), F.poisson_nll_loss(logits, soft),
    F.cosine_embedding_loss(logits, soft, torch.ones(16, device="cuda")),
]
assert all(loss.shape == () for loss in losses)
sum(losses).backward()
assert logits.grad.shape == logits.shape
scores = torch.zeros(50, 4, 20, device="cuda", requires_grad=True)
own = torch.randint(1, 20, (4, 10)), torch.tensor([50] * 4), torch.tensor([10] * 4)
cudnn = torch.randint(1, 20, (40,), dtype=torch.int32), (50,) * 4, (10,) * 4
for targets, given, wanted in (own, cudnn):
    loss = F.ctc_loss(scores.log_softmax(2), targets.cuda(), given, wanted)
    assert loss.shape == ()
    loss.backward()
assert scores.grad.shape == scores.shape
