"""Speech to words: a spectrum on the device, an encoder with convolutions, a decoder that looks."""
import torch
from torch import nn

WIDTH, WORDS = 64, 300
window = torch.hann_window(400).cuda()
filters = torch.rand(80, 201).cuda()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.ears = nn.Sequential(nn.Conv1d(80, WIDTH, 3, padding=1), nn.GELU(),
                                  nn.Conv1d(WIDTH, WIDTH, 3, 2, 1), nn.GELU())
        self.core = nn.Transformer(WIDTH, 4, 2, 2, 4 * WIDTH, batch_first=True)
        self.words = nn.Embedding(WORDS, WIDTH)

    def forward(self, sound, tokens):
        spectrum = torch.stft(sound, 400, 160, window=window, return_complex=True)
        mel = (filters @ spectrum[..., :-1].abs().square()).clamp(min=1e-10).log10()
        heard = self.ears(mel).transpose(1, 2)
        mask = self.core.generate_square_subsequent_mask(tokens.size(1)).to(tokens.device)
        y = self.core(heard, self.words(tokens), tgt_mask=mask, tgt_is_causal=True)
        return y @ self.words.weight.t(), heard.size(1)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    tokens = torch.randint(WORDS, (2, 31)).cuda()
    y, length = model(torch.zeros(2, 16000, device="cuda"), tokens[:, :-1])
    assert length == 50 and y.shape == (2, 30, WORDS)
    nn.functional.cross_entropy(y.flatten(0, 1), tokens[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
