"""A recurrent encoder and a decoder with attention, which learns to reverse a sequence."""

import random

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(5)
random.seed(5)
SOS, EOS, TOKENS, LENGTH = 0, 1, 20, 6


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.reduce = nn.Linear(2 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        output, hidden = self.gru(self.dropout(self.embedding(input)))
        hidden = torch.cat([hidden[0], hidden[1]], dim=-1).unsqueeze(0)
        return self.reduce(output), torch.tanh(self.reduce(hidden))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.cell = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, hidden, target, teacher_forcing):
        token = torch.full((encoder_outputs.size(0), 1), SOS, dtype=torch.long)
        outputs = []
        for i in range(target.size(1)):
            embedded = self.dropout(self.embedding(token))
            context = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.cell(torch.cat((embedded, context), dim=2), hidden)
            outputs.append(self.out(output))
            if teacher_forcing:
                token = target[:, i].unsqueeze(1)
            else:
                token = outputs[-1].argmax(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1)


sources = torch.randint(2, TOKENS, (80, LENGTH))
targets = torch.cat([sources.flip(1), torch.full((80, 1), EOS)], dim=1)
dataset = TensorDataset(sources, targets)
loader = DataLoader(dataset, sampler=RandomSampler(dataset), batch_size=8)
encoder, decoder = EncoderRNN(TOKENS, 24), AttnDecoderRNN(24, TOKENS)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.001)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.001)
criterion = nn.NLLLoss()
for epoch in range(2):
    for source, target in loader:
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, hidden = encoder(source)
        output = decoder(encoder_outputs, hidden, target, random.random() < 0.8)
        loss = criterion(output.view(-1, TOKENS), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.9g}")
