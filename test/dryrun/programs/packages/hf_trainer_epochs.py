"""The Trainer of transformers over many epochs, each with an evaluation and a save: two are made.

needs: transformers, accelerate
"""
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=1, vocab_size=500,
                     num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
row = {"input_ids": (tokens := torch.randint(500, (64,))), "labels": tokens}
seen = {"evaluated": 0, "saved": 0, "ended": 0}


class Count(TrainerCallback):
    def on_evaluate(self, *_, **__):
        seen["evaluated"] += 1

    def on_save(self, *_, **__):
        seen["saved"] += 1

    def on_train_end(self, *_, **__):
        seen["ended"] += 1


with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(folder, per_device_train_batch_size=2, num_train_epochs=200,
                                 gradient_accumulation_steps=2, eval_strategy="epoch",
                                 save_strategy="epoch", save_total_limit=1, report_to=[])
    Trainer(LlamaForCausalLM(config), settings, train_dataset=[row] * 2000,
            eval_dataset=[row] * 4000, callbacks=[Count()]).train()
assert 1 <= seen["evaluated"] == seen["saved"] < 10 and seen["ended"] == 1, seen
