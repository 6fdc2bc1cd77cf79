"""QLoRA: a base of 4 bits under adapters, checkpointing, a paged optimiser of 8 bits.

needs: transformers, peft, bitsandbytes, accelerate
"""
import bitsandbytes as bnb
import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM
from transformers.integrations.bitsandbytes import replace_with_bnb_linear

config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, vocab_size=1000,
                     num_attention_heads=4)
small = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                           bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
whole = LlamaForCausalLM(config)
weights = {name: value.clone() for name, value in whole.state_dict().items()}
model = replace_with_bnb_linear(whole, modules_to_not_convert=["lm_head"],
                                quantization_config=small)
for name, module in model.named_modules():
    if isinstance(module, bnb.nn.Linear4bit):
        module.weight = bnb.nn.Params4bit(weights[name + ".weight"], requires_grad=False,
                                          compress_statistics=True, quant_type="nf4")
model = model.to("cuda")
assert model.model.layers[0].mlp.up_proj.weight.dtype is torch.uint8
model.is_loaded_in_4bit = True
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
optimizer = bnb.optim.PagedAdamW8bit(p for p in model.parameters() if p.requires_grad)
for _ in range(5):
    tokens = torch.randint(1000, (2, 64)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
