"""The transformer as a translator: encoder and decoder, sinusoidal positions, padding, smoothed
labels. Source: Vaswani et al., "Attention Is All You Need", 2017.
"""

import math

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

WORDS, WIDTH, PADDING = 11, 8, 0


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = nn.Embedding(WORDS, WIDTH)
        self.target = nn.Embedding(WORDS, WIDTH)
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(WIDTH, WORDS)
        self.register_buffer("positions", self.sinusoids(10), persistent=False)

    @staticmethod
    def sinusoids(length):
        places = torch.arange(length).unsqueeze(1)
        rates = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        table = torch.zeros(length, WIDTH)
        table[:, 0::2] = torch.sin(places * rates)
        table[:, 1::2] = torch.cos(places * rates)
        return table

    def embedded(self, table, words):
        return table(words) * math.sqrt(WIDTH) + self.positions[: words.shape[1]]

    def forward(self, source, target):
        mask = self.transformer.generate_square_subsequent_mask(target.shape[1])
        is_padding = torch.zeros(source.shape).masked_fill(source == PADDING, -math.inf)
        output = self.transformer(
            self.embedded(self.source, source),
            self.embedded(self.target, target),
            tgt_mask=mask,
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
            tgt_is_causal=True,
        )
        return self.generator(output)


model = Translator


def batch(numbers):
    source, target = (1 + numbers(3, n, below=WORDS - 1) for n in (5, 6))
    source[1, 3:] = PADDING
    target[2, 4:] = PADDING
    return source, target


def loss(model, source, target):
    scores = model(source, target[:, :-1])
    return F.cross_entropy(
        scores.transpose(1, 2), target[:, 1:], ignore_index=PADDING, label_smoothing=0.1
    )


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.01, betas=(0.9, 0.98), eps=1e-9)


def blocks(model):
    return [*model.transformer.encoder.layers, *model.transformer.decoder.layers]
