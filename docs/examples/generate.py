"""A decoder with a key-value cache of fixed size generates tokens: each is one call of a program
that is compiled once. `python -m jaxgrad run docs/examples/generate.py --tokens 200`
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 1000, 512, 256, 8, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        shape = 1, HEADS, LENGTH, WIDTH // HEADS
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x, positions):
        heads = *x.shape[:2], HEADS, -1
        query, key, value = (
            part.reshape(heads).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        self.keys.index_copy_(2, positions, key)
        self.values.index_copy_(2, positions, value)
        visible = torch.arange(LENGTH) <= positions[:, None]
        y = F.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=visible)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2 = (
            nn.LayerNorm(WIDTH),
            Attention(),
            nn.LayerNorm(WIDTH),
        )
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x, positions):
        x = x + self.attention(self.norm1(x), positions)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, positions):
        """The most probable token after `tokens` (1, t), which stand at `positions` (t,)."""
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x, positions)
        return self.head(self.norm(x[:, -1:])).argmax(-1)


def stream(step, prompt, count):
    """Yield `count` tokens after `prompt` (1, t), each as soon as it is known."""
    start = prompt.shape[1]
    token = step(prompt, torch.arange(start))
    for place in range(start, start + count):
        following = step(token, torch.tensor([place]))  # computed while the caller has the last
        yield token.item()
        token = following


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--eager", action="store_true", help="do not compile")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Decoder().eval().requires_grad_(False)
    step = model if options.eager else torch.compile(model)
    prompt = torch.randint(VOCABULARY, (1, 16))
    with torch.no_grad():
        first = [*stream(step, prompt, options.tokens)]  # compiles
        start, work = time.perf_counter(), time.process_time()
        again = [*stream(step, prompt, options.tokens)]
        seconds, work = time.perf_counter() - start, time.process_time() - work
    assert first == again
    count = options.tokens
    print(
        f"{count / seconds:.0f} tokens per second, {1000 * work / count:.1f} ms of processor each"
    )


if __name__ == "__main__":
    main()
