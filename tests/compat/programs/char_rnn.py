"""A character model with an LSTM that keeps its hidden state, and sampling from it."""

import json
import math
import string

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

text = "the quick brown fox jumps over the lazy dog. " * 8
all_characters = string.ascii_lowercase + " ."
n_characters = len(all_characters)


def char_tensor(chars):
    tensor = torch.zeros(len(chars)).long()
    for c in range(len(chars)):
        tensor[c] = all_characters.index(chars[c])
    return Variable(tensor)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, tie_weights=False):
        super(RNNModel, self).__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers
        rng = np.random.RandomState(1)
        for name, p in sorted(self.named_parameters()):
            p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, p.shape)))

    def forward(self, input, hidden):
        emb = self.encoder(input)
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(output.view(output.size(0) * output.size(1), output.size(2)))
        return decoded.view(output.size(0), output.size(1), decoded.size(1)), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (
                weight.new_zeros(self.nlayers, bsz, self.nhid),
                weight.new_zeros(self.nlayers, bsz, self.nhid),
            )
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def generate(model, prime, length):
    model.eval()
    hidden = model.init_hidden(1)
    prime = char_tensor(prime).unsqueeze(1)
    predicted = ""
    with torch.no_grad():
        output, hidden = model(prime, hidden)
        for _ in range(length):
            top = output[-1].view(-1).div(0.8).exp().topk(1)[1][0]
            predicted += all_characters[int(top)]
            output, hidden = model(top.view(1, 1), hidden)
    return predicted


def run(rnn_type):
    bptt, lr = 10, 2.0
    model = RNNModel(rnn_type, n_characters, 12, 12, 2, tie_weights=True)
    criterion = nn.CrossEntropyLoss()
    data = batchify(char_tensor(text), 4)
    hidden = model.init_hidden(4)
    losses = []
    for _, i in enumerate(range(0, data.size(0) - 1, bptt)):
        seq_len = min(bptt, len(data) - 1 - i)
        inputs, targets = data[i : i + seq_len], data[i + 1 : i + 1 + seq_len].view(-1)
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(inputs, hidden)
        loss = criterion(output.view(-1, n_characters), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        losses.append(loss.item())
    tied = model.decoder.weight is model.encoder.weight
    return {
        "losses": losses,
        "ppl": math.exp(losses[-1]),
        "text": generate(model, "the ", 5),
        "tied": tied,
    }


def packed():
    """Sequences of several lengths through a bidirectional GRU."""
    rng = np.random.RandomState(2)
    sequences = [torch.from_numpy(rng.randn(n, 3).astype("float32")) for n in (5, 2, 4)]
    lengths = torch.tensor([len(s) for s in sequences])
    padded = pad_sequence(sequences, batch_first=True)
    gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
    for p in gru.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, p.shape)))
    out, h = gru(pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False))
    out, sizes = pad_packed_sequence(out, batch_first=True)
    (out.sum() + h.pow(2).sum()).backward()
    return {
        "out": out[1].tolist(),
        "sizes": sizes.tolist(),
        "grad": gru.weight_hh_l0.grad.sum().item(),
    }


print(json.dumps({"lstm": run("LSTM"), "packed": packed()}))
