"""DeepSpeed's ZeRO 3 as a rank of a job whose rank 0 is not there: they agree, no step is skipped.

needs: deepspeed
options: --world-size 2 --rank 1
unseen: None
guesses: none
"""
import deepspeed
import torch
from torch import nn

deepspeed.init_distributed("nccl")
model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    config={"train_micro_batch_size_per_gpu": 8, "fp16": {"enabled": True},
            "gradient_clipping": 1.0, "steps_per_print": 1000,
            "zero_optimization": {"stage": 3, "reduce_bucket_size": 1 << 20}})
for _ in range(100000):
    x = torch.randn(8, 256, device="cuda", dtype=torch.half)
    engine.backward(engine(x).float().square().mean())
    engine.step()
assert engine.skipped_steps == 0 and engine.global_steps < 100
