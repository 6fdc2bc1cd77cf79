"""A small Llama under the Trainer of transformers: bf16, checkpointing, accumulation.

needs: transformers, accelerate
"""
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=1000,
                     num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256)
data = [{"input_ids": (tokens := torch.randint(1000, (128,))), "labels": tokens}
        for _ in range(64)]
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(folder, per_device_train_batch_size=4, max_steps=8, bf16=True,
                             gradient_accumulation_steps=2, gradient_checkpointing=True,
                             logging_steps=2, report_to=[], save_strategy="no")
    Trainer(LlamaForCausalLM(config), settings, train_dataset=data).train()
