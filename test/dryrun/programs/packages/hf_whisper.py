"""Whisper: convolutions over a spectrogram, then an encoder and a decoder.

needs: transformers
"""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

config = WhisperConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
                       decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128,
                       vocab_size=1000, max_source_positions=150, pad_token_id=0,
                       bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
model = WhisperForConditionalGeneration(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    sound, text = torch.randn(2, 80, 300).cuda(), torch.randint(1000, (2, 40)).cuda()
    model(input_features=sound, labels=text).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
