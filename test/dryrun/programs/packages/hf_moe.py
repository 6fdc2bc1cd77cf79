"""Mixtral and Qwen2-MoE: routers choose experts, so sizes come from values of the device.

needs: transformers
"""
import torch
from transformers import MixtralConfig, MixtralForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM

size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 500,
        "num_attention_heads": 4, "num_key_value_heads": 2}
mixtral = MixtralForCausalLM(MixtralConfig(**size, num_local_experts=4))
qwen = Qwen2MoeForCausalLM(Qwen2MoeConfig(**size, num_experts=4, num_experts_per_tok=2,
                                          moe_intermediate_size=64,
                                          shared_expert_intermediate_size=64))
for model in (mixtral, qwen):
    model = model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        tokens = torch.randint(500, (2, 64)).cuda()
        model(input_ids=tokens, labels=tokens, output_router_logits=True).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
