"""A language model of LSTMs over a long text, cut into pieces whose states go on."""
import torch
from torch import nn

WORDS, WIDTH, PIECE, BATCH = 500, 64, 20, 8
words, head = nn.Embedding(WORDS, WIDTH).cuda(), nn.Linear(WIDTH, WORDS).cuda()
layers = nn.LSTM(WIDTH, WIDTH, 2, dropout=0.2).cuda()
head.weight = words.weight
weights = list({*words.parameters(), *head.parameters(), *layers.parameters()})
assert len(weights) == 1 + 1 + 8
optimizer = torch.optim.SGD(weights, lr=1.0)
text = torch.randint(WORDS, (5 * PIECE + 1, BATCH)).cuda()
state = None
for begin in range(0, 5 * PIECE, PIECE):
    x, wanted = text[begin:begin + PIECE], text[begin + 1:begin + PIECE + 1]
    if state:
        state = tuple(part.detach() for part in state)
    y, state = layers(words(x), state)
    assert state[0].shape == (2, BATCH, WIDTH)
    loss = nn.functional.cross_entropy(head(y).flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 0.25)
    optimizer.step()
