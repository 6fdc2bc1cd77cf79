"""A small BERT that classifies, under the Trainer: fp16, evaluation, a checkpoint at the end.

needs: transformers, accelerate
"""
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

config = BertConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=1000,
                    num_attention_heads=4, num_labels=3)
data = [{"input_ids": torch.randint(1000, (64,)), "attention_mask": torch.ones(64).long(),
         "labels": i % 3} for i in range(32)]
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(folder, per_device_train_batch_size=8, num_train_epochs=2, fp16=True,
                             eval_strategy="epoch", save_strategy="epoch", report_to=[])
    model = BertForSequenceClassification(config)
    Trainer(model, settings, train_dataset=data, eval_dataset=data[:16]).train()
