"""A language model of two LSTM layers whose output weights are its embedding, with a state that
is carried on from each segment to the next. Sources: Zaremba et al., "Recurrent Neural Network
Regularization", 2014; Press and Wolf, "Using the Output Embedding to Improve Language Models",
2016.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

VOCABULARY, WIDTH, LAYERS, BATCH, LENGTH, SEGMENTS = 13, 6, 2, 3, 5, 2


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, LAYERS, dropout=0.0)
        self.decoder = nn.Linear(WIDTH, VOCABULARY)
        self.decoder.weight = self.encoder.weight

    def forward(self, words, state):
        output, state = self.rnn(self.encoder(words), state)
        return self.decoder(output), state


model = LanguageModel


def batch(numbers):
    return (numbers(SEGMENTS * LENGTH + 1, BATCH, below=VOCABULARY),)


def loss(model, words):
    zeros = torch.zeros(LAYERS, BATCH, WIDTH)
    state, total = (zeros, zeros.clone()), 0.0
    for start in range(0, SEGMENTS * LENGTH, LENGTH):
        state = tuple(tensor.detach() for tensor in state)
        scores, state = model(words[start : start + LENGTH], state)
        following = words[start + 1 : start + LENGTH + 1]
        total = total + F.cross_entropy(scores.flatten(0, 1), following.flatten())
    return total / SEGMENTS


def optimizer(parameters):
    return torch.optim.ASGD(parameters, lr=0.5, t0=0, weight_decay=1e-5)
