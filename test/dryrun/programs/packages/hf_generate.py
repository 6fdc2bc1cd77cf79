"""GPT-2 writes on: the cache of keys and values grows by a token until the text is longest.

needs: transformers
"""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(n_embd=128, n_layer=2, n_head=4, vocab_size=1000, bos_token_id=1,
                    eos_token_id=2)
model = GPT2LMHeadModel(config).to("cuda", torch.float16).eval()
tokens = torch.randint(1, 1000, (4, 32), device="cuda")
mask = torch.ones_like(tokens)
calls = []
model.register_forward_hook(lambda *_: calls.append(1))
for more in ({"do_sample": False}, {"do_sample": True, "top_k": 20}, {"num_beams": 3}):
    calls.clear()
    model.generate(tokens, attention_mask=mask, max_new_tokens=20, pad_token_id=0, **more)
    assert len(calls) == 20, (more, len(calls))
