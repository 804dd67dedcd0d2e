"""BERT: an encoder of two sentences, trained on masked words and on whether the second follows.
Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

VOCABULARY, LENGTH, WIDTH = 13, 5, 8


class BERT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 2, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.transform = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.follows = nn.Linear(WIDTH, 2)

    def forward(self, words, segments):
        x = self.words(words) + self.positions.weight + self.segments(segments)
        x = self.encoder(self.norm(x), src_key_padding_mask=words == 0)
        scores = F.linear(self.transform(x), self.words.weight, self.bias)
        return scores, self.follows(self.pooler(x[:, 0]).tanh())


model = BERT


def batch(numbers):
    words = 1 + numbers(4, LENGTH, below=VOCABULARY - 1)
    hidden, segments = numbers(4, LENGTH, below=3) == 0, numbers(4, LENGTH, below=2)
    target = torch.where(hidden, words, -100)
    target[:, 1] = words[:, 1]
    words[2:, -2:] = 0
    return words, segments, target, numbers(4, below=2)


def loss(model, words, segments, target, follows):
    scores, pooled = model(words, segments)
    masked = F.cross_entropy(scores.transpose(1, 2), target, ignore_index=-100)
    return masked + F.cross_entropy(pooled, follows)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.01)


def blocks(model):
    return model.encoder.layers
