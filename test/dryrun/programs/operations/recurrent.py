"""LSTM, GRU and RNN by cuDNN: stacked, in both directions, over packed sequences."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

x = torch.zeros(4, 12, 16, device="cuda", requires_grad=True)
lengths = torch.tensor([12, 9, 5, 1])
for make in (nn.LSTM, nn.GRU, nn.RNN):
    for both in (False, True):
        layer = make(16, 32, num_layers=2, batch_first=True, dropout=0.1,
                     bidirectional=both).cuda()
        y, _ = layer(x)
        assert y.shape == (4, 12, 64 if both else 32)
        y.sum().backward()
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        y, _ = layer(packed)
        y, back = pad_packed_sequence(y, batch_first=True)
        assert y.shape[:2] == (4, 12) and torch.equal(back, lengths)
        y.sum().backward()
        assert all(p.grad.shape == p.shape for p in layer.parameters())
        with torch.no_grad():
            layer.eval()(x)
small = nn.LSTM(16, 32, proj_size=8).cuda()
assert small(x.transpose(0, 1))[0].shape == (12, 4, 8)
cell = nn.LSTMCell(16, 32).cuda()
hidden, state = cell(x[:, 0])
assert hidden.shape == state.shape == (4, 32)
assert nn.GRUCell(16, 32).cuda()(x[:, 0]).shape == (4, 32)
