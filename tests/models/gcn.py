"""A graph convolutional network: products with the normalized adjacency matrix, which is sparse.
Source: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", 2016.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

NODES, EDGES, FEATURES, WIDTH, CLASSES = 7, 9, 5, 6, 3


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Convolution(FEATURES, WIDTH)
        self.second = Convolution(WIDTH, CLASSES)

    def forward(self, x, edges):
        return self.second(self.first(x, normalized(edges)).relu(), normalized(edges))


def normalized(edges):
    """The adjacency matrix with self-loops, between inverse roots of the degrees."""
    loops = torch.arange(NODES).expand(2, NODES)
    places = torch.cat([edges, edges.flip(0), loops], 1)
    ones = torch.ones(places.shape[1])
    roots = torch.zeros(NODES).index_add(0, places[0], ones).rsqrt()
    values = roots[places[0]] * roots[places[1]]
    return torch.sparse_coo_tensor(places, values, (NODES, NODES))


model = GCN


def batch(numbers):
    classes = numbers(NODES, below=CLASSES)
    classes[::3] = -100
    return numbers(NODES, FEATURES), numbers(2, EDGES, below=NODES), classes


def loss(model, x, edges, classes):
    penalty = 5e-4 * (model.first.weight**2).sum()
    return F.cross_entropy(model(x, edges), classes, ignore_index=-100) + penalty


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.01)
