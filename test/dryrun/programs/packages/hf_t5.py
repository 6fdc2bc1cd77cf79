"""T5: an encoder, a decoder, Adafactor.

needs: transformers
"""
import torch
from transformers import T5Config, T5ForConditionalGeneration
from transformers.optimization import Adafactor

config = T5Config(d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4, vocab_size=1000,
                  decoder_start_token_id=0)
model = T5ForConditionalGeneration(config).cuda()
optimizer = Adafactor(model.parameters())
for _ in range(6):
    source, target = torch.randint(1000, (2, 4, 64)).cuda()
    model(input_ids=source, labels=target).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
