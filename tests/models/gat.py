"""A graph attention network: a softmax over the edges into each node. Source: Velickovic et al.,
"Graph Attention Networks", 2017.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

NODES, EDGES, FEATURES, WIDTH, CLASSES = 6, 10, 4, 3, 3


class Attention(nn.Module):
    def __init__(self, inputs, outputs, heads, is_last=False):
        super().__init__()
        self.heads, self.is_last = heads, is_last
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.source = nn.Parameter(torch.zeros(1, heads, outputs))
        self.target = nn.Parameter(torch.zeros(1, heads, outputs))

    def forward(self, x, edges):
        x = self.linear(x).unflatten(-1, (self.heads, -1))
        source, target = edges
        parts = (x * self.source).sum(-1), (x * self.target).sum(-1)
        scores = F.leaky_relu(parts[0][source] + parts[1][target], 0.2)
        places = target.unsqueeze(-1).expand_as(scores)
        greatest = torch.zeros(NODES, self.heads).scatter_reduce(
            0, places, scores.detach(), "amax", include_self=False
        )
        weights = (scores - greatest[target]).exp()
        total = torch.zeros(NODES, self.heads).index_add(0, target, weights)
        weights = weights / total[target]
        sums = torch.zeros_like(x).index_add(0, target, weights.unsqueeze(-1) * x[source])
        return sums.mean(1) if self.is_last else F.elu(sums.flatten(1))


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Attention(FEATURES, WIDTH, 2)
        self.second = Attention(2 * WIDTH, CLASSES, 2, is_last=True)

    def forward(self, x, edges):
        loops = torch.arange(NODES).expand(2, NODES)
        edges = torch.cat([edges, loops], 1)
        return self.second(self.first(x, edges), edges)


model = GAT


def batch(numbers):
    return numbers(NODES, FEATURES), numbers(2, EDGES, below=NODES), numbers(NODES, below=CLASSES)


def loss(model, x, edges, classes):
    return F.nll_loss(F.log_softmax(model(x, edges), -1), classes)


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.01, weight_decay=5e-4)
