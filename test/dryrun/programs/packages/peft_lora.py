"""LoRA of peft on a small Llama: the base is frozen, its adapters learn.

needs: transformers, peft
"""
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=1000,
                     num_attention_heads=4)
settings = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.1,
                  task_type="CAUSAL_LM")
model = get_peft_model(LlamaForCausalLM(config), settings).to("cuda", torch.bfloat16)
model.enable_input_require_grads()
model.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
for _ in range(6):
    tokens = torch.randint(1000, (4, 64)).cuda()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
