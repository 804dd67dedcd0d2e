"""A transformer that classifies sequences of tokens, trained with AdamW and a warm-up."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, LENGTH, CLASSES = 30, 12, 4


class Sequences(Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(1, VOCABULARY, (count, LENGTH))
        self.lengths = torch.randint(5, LENGTH + 1, (count,))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index].clone()
        tokens[self.lengths[index] :] = 0
        return tokens, int(tokens.sum()) % CLASSES


class PositionalEncoding(nn.Module):
    def __init__(self, width, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(LENGTH).unsqueeze(1)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        encoding = torch.zeros(1, LENGTH, width)
        encoding[0, :, 0::2] = torch.sin(position * rates)
        encoding[0, :, 1::2] = torch.cos(position * rates)
        self.register_buffer("encoding", encoding)

    def forward(self, x):
        return self.dropout(x + self.encoding[:, : x.size(1)])


class Classifier(nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.position = PositionalEncoding(width)
        layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=64, dropout=0.1, batch_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, CLASSES))
        self.apply(self.initialize)

    def initialize(self, module):
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.1)
            nn.init.zeros_(module.bias)

    def forward(self, tokens):
        padding = tokens == 0
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        x = self.encoder(self.position(x), src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1).float()
        return self.head((x * kept).sum(1) / kept.sum(1))


torch.manual_seed(0)
loader = DataLoader(Sequences(80), batch_size=8, shuffle=True, drop_last=True)
model = Classifier()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
for epoch in range(2):
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.9g}")
