"""A tagger of sentences of different lengths: a bidirectional GRU over packed sequences. Source of
the network: Huang et al., "Bidirectional LSTM-CRF Models for Sequence Tagging", 2015, with the
cells of Cho et al., 2014, and without the random field.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS, TAGS, WIDTH, LENGTHS = 11, 4, 5, [4, 6, 1, 3]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.gru = nn.GRU(WIDTH, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(8, TAGS)

    def forward(self, words):
        x = self.embedding(words)
        packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        output, last = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.linear(output), last


model = Tagger


def batch(numbers):
    sentences = len(LENGTHS), max(LENGTHS)
    return numbers(*sentences, below=WORDS), numbers(*sentences, below=TAGS)


def loss(model, words, tags):
    inside = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    scores, last = model(words * inside)
    tags = tags.masked_fill(~inside, -100)
    errors = F.cross_entropy(scores.transpose(1, 2), tags, ignore_index=-100)
    return errors + 0.01 * last.square().mean()


def optimizer(parameters):
    return torch.optim.Adamax(parameters, lr=0.02)
