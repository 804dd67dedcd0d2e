"""A speech network: convolutions over the spectrogram, a bidirectional recurrent network, and the
connectionist loss over all alignments. Sources: Amodei et al., "Deep Speech 2", 2015; Graves et
al., "Connectionist Temporal Classification", 2006.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

TIMES, FREQUENCIES, CHANNELS, WIDTH, LETTERS = 24, 8, 2, 4, 5
INPUT_LENGTHS, TARGET_LENGTHS = (12, 9, 10), (4, 2, 3)


class SpeechNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, CHANNELS, (5, 3), stride=(2, 2), padding=(2, 1), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(CHANNELS, CHANNELS, (5, 3), stride=(1, 2), padding=(2, 1), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.Hardtanh(0, 20, inplace=True),
        )
        self.rnn = nn.RNN(CHANNELS * FREQUENCIES // 4, WIDTH, 2, bidirectional=True)
        self.linear = nn.Linear(2 * WIDTH, LETTERS)

    def forward(self, spectrograms):
        x = self.convolutions(spectrograms.unsqueeze(1))  # (batch, channels, times, frequencies)
        x = x.permute(2, 0, 1, 3).flatten(2)
        return self.linear(self.rnn(x)[0]).log_softmax(-1)


model = SpeechNet


def batch(numbers):
    count = len(INPUT_LENGTHS)
    return numbers(count, TIMES, FREQUENCIES), numbers(sum(TARGET_LENGTHS), below=LETTERS - 1)


def loss(model, spectrograms, letters):
    lengths = INPUT_LENGTHS, TARGET_LENGTHS
    return F.ctc_loss(model(spectrograms), letters + 1, *lengths, blank=0, zero_infinity=True)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)
