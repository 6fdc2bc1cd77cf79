"""Liger's kernels in a Llama: the head and the loss are one, and no logits are made.

needs: liger_kernel, transformers, triton
"""
import torch
from liger_kernel.transformers import apply_liger_kernel_to_llama
from transformers import LlamaConfig, LlamaForCausalLM

apply_liger_kernel_to_llama()
config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                     vocab_size=32000, num_attention_heads=4)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(5):
    tokens = torch.randint(1000, (4, 512)).cuda()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
