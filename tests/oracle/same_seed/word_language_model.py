"""A language model of words: embeddings, an LSTM of two layers with dropout, and SGD by hand."""

import torch
from torch import nn

torch.manual_seed(1111)
NTOKENS, BPTT, BATCH = 40, 7, 4


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.2):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.nlayers, bsz, self.nhid),
            weight.new_zeros(self.nlayers, bsz, self.nhid),
        )


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


corpus = torch.multinomial(torch.rand(NTOKENS), BATCH * (BPTT * 20 + 1), replacement=True)
train_data = batchify(corpus, BATCH)
model = RNNModel(NTOKENS, 16, 24, 2)
criterion = nn.NLLLoss()
hidden = model.init_hidden(BATCH)
model.train()
for i in range(0, train_data.size(0) - 1, BPTT):
    data, targets = train_data[i : i + BPTT], train_data[i + 1 : i + 1 + BPTT].reshape(-1)
    model.zero_grad()
    output, hidden = model(data, repackage_hidden(hidden))
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-2.0)
    print(f"batch {i // BPTT} loss {loss.item():.9g}")
