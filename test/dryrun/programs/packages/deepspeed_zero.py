"""DeepSpeed's ZeRO, stages 1 to 3, each with its own buckets; one process.

needs: deepspeed
"""
import os

import deepspeed
import torch
from torch import nn

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                  MASTER_PORT="29581")
deepspeed.init_distributed("nccl")
for stage in (1, 2, 3):
    settings = {"train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": True},
            "gradient_clipping": 1.0, "steps_per_print": 1000,
            "zero_optimization": {"stage": stage, "reduce_bucket_size": 1 << 20,
                                  "allgather_bucket_size": 1 << 20}}
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    engine, *_ = deepspeed.initialize(model=model, config=settings, optimizer=torch.optim.AdamW(
        model.parameters(), lr=1e-3))
    for _ in range(2):
        x = torch.randn(8, 256, device="cuda", dtype=torch.bfloat16)
        engine.backward(engine(x).float().square().mean())
        engine.step()
