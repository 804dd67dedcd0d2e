"""A transformer written from scratch, with causal and padding masks, that learns to reverse."""

import copy
import json
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def clones(module, N):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def subsequent_mask(size):
    attn_shape = (1, size, size)
    return torch.triu(torch.ones(attn_shape), diagonal=1).type(torch.uint8) == 0


def attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = F.softmax(scores, dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model, dropout=0.0):
        super().__init__()
        assert d_model % h == 0
        self.d_k, self.h = d_model // h, h
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        x, self.attn = attention(query, key, value, mask=mask, dropout=self.dropout)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.linears[-1](x)


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class Layer(nn.Module):
    def __init__(self, size, heads, has_source):
        super().__init__()
        self.attns = clones(MultiHeadedAttention(heads, size), 2 if has_source else 1)
        self.ff = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.norms = clones(LayerNorm(size), 3 if has_source else 2)

    def forward(self, x, mask, memory=None, memory_mask=None):
        y = self.norms[0](x)
        x = x + self.attns[0](y, y, y, mask)
        if memory is not None:
            y = self.norms[1](x)
            x = x + self.attns[1](y, memory, memory, memory_mask)
        return x + self.ff(self.norms[-1](x))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)].requires_grad_(False)


class Transformer(nn.Module):
    def __init__(self, vocab, d_model=16, heads=2, layers=1):
        super().__init__()
        self.lut = nn.Embedding(vocab, d_model, padding_idx=0)
        self.position = PositionalEncoding(d_model)
        self.encoder = nn.ModuleList(Layer(d_model, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d_model, heads, True) for _ in range(layers))
        self.proj = nn.Linear(d_model, vocab)
        self.scale = math.sqrt(d_model)

    def forward(self, src, tgt, src_mask, tgt_mask):
        memory = self.position(self.lut(src) * self.scale)
        for layer in self.encoder:
            memory = layer(memory, src_mask)
        x = self.position(self.lut(tgt) * self.scale)
        for layer in self.decoder:
            x = layer(x, tgt_mask, memory, src_mask)
        return F.log_softmax(self.proj(x), dim=-1)


def rate(step, model_size=16, factor=2, warmup=4):
    step = max(step, 1)
    return factor * (model_size**-0.5 * min(step**-0.5, step * warmup**-1.5))


rng = np.random.RandomState(5)
vocab, pad = 9, 0
model = Transformer(vocab)
for p in model.parameters():
    if p.dim() > 1:
        bound = math.sqrt(6.0 / (p.size(0) + p.size(1)))
        with torch.no_grad():
            p.copy_(torch.from_numpy(rng.uniform(-bound, bound, p.shape)))
    elif p.shape[0] != 16 or p.sum() == 0:
        nn.init.zeros_(p)
for name, p in model.named_parameters():
    if name.endswith("bias"):
        nn.init.zeros_(p)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=rate)
criterion = nn.KLDivLoss(reduction="sum")
losses = []
for _ in range(3):
    words = torch.from_numpy(rng.randint(2, vocab, (6, 5)))
    words[::2, 4] = pad
    tgt = torch.cat([torch.ones(6, 1, dtype=torch.long), words.flip(1)], dim=1)
    tgt_in, tgt_y = tgt[:, :-1], tgt[:, 1:]
    src_mask = (words != pad).unsqueeze(-2)
    tgt_mask = (tgt_in != pad).unsqueeze(-2) & subsequent_mask(tgt_in.size(-1))
    out = model(words, tgt_in, src_mask, tgt_mask)
    true_dist = torch.full_like(out.data, 0.1 / (vocab - 2))
    true_dist.scatter_(2, tgt_y.unsqueeze(2), 0.9)
    true_dist[..., pad] = 0
    true_dist[tgt_y == pad] = 0.0
    loss = criterion(out, true_dist) / (tgt_y != pad).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
model.eval()
ys = torch.ones(1, 1).type_as(words)
for _ in range(2):
    prob = model(words[1:2], ys, None, subsequent_mask(ys.size(1)).type_as(words))[:, -1]
    _, next_word = torch.max(prob, dim=1)
    ys = torch.cat([ys, torch.empty(1, 1).type_as(words).fill_(next_word.item())], dim=1)
attn = model.decoder[0].attns[1].attn
print(
    json.dumps({"losses": losses, "decoded": ys[0].tolist(), "attention": attn[0, :, -1].tolist()})
)
