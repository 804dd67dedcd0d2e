"""Layers of torch_geometric on a small graph, and a model."""

from harness import fill, gradients, integers, named, normal, program, train

# The layers that take node features and edges, by what they are made with.
LAYERS = {
    "GCNConv": {},
    "ChebConv": {"K": 3},
    "SAGEConv": {},
    "GraphConv": {},
    "GatedGraphConv": {"num_layers": 2},
    "ResGatedGraphConv": {},
    "GATConv": {"heads": 2},
    "GATv2Conv": {"heads": 2},
    "TransformerConv": {"heads": 2},
    "TAGConv": {},
    "ARMAConv": {"num_stacks": 2, "num_layers": 2},
    "SGConv": {"K": 2},
    "SSGConv": {"alpha": 0.1, "K": 2},
    "APPNP": {"K": 3, "alpha": 0.1},
    "MFConv": {},
    "LEConv": {},
    "ClusterGCNConv": {},
    "FeaStConv": {"heads": 2},
    "HypergraphConv": {},
    "GeneralConv": {},
    "FiLMConv": {},
    "SuperGATConv": {"heads": 2},
    "EGConv": {"num_heads": 2, "num_bases": 2},
    "LGConv": {},
    "AntiSymmetricConv": {},
}
WITHOUT_CHANNELS = {"APPNP", "LGConv"}
ONE_CHANNEL = {"GatedGraphConv", "AntiSymmetricConv"}


def edges():
    import torch

    ring = torch.arange(8)
    ends = torch.stack([ring, (ring + 1) % 8]), torch.stack([(ring + 3) % 8, ring])
    return torch.cat(ends, 1)


def layer_of(name):
    from torch_geometric import nn

    kind = getattr(nn, name)
    if name in WITHOUT_CHANNELS:
        return fill(kind(**LAYERS[name]))
    channels = (8,) if name in ONE_CHANNEL else (8, 8)
    return fill(kind(*channels, **LAYERS[name]))


def define(name):
    @program("torch_geometric", name)
    def layer():
        nodes = normal(8, 8, name="nodes").requires_grad_()
        layer = layer_of(name)
        outputs = layer(nodes, edges())
        outputs.square().sum().backward()
        return {"output": outputs, "gradient": nodes.grad} | named(gradients(layer), "layer")


for layer_name in LAYERS:
    define(layer_name)


@program("torch_geometric", "with_networks")
def with_networks():
    """The layers that take a network."""
    import torch
    from torch_geometric import nn

    def network(inputs):
        layers = torch.nn.Linear(inputs, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)
        return torch.nn.Sequential(*layers)

    results = {}
    layers = {"gin": nn.GINConv(network(8)), "edge": nn.EdgeConv(network(16))}
    layers["gine"] = nn.GINEConv(network(8), edge_dim=3)
    layers["cg"] = nn.CGConv(8, dim=3)
    for name, layer in layers.items():
        nodes = normal(8, 8, name="nodes").requires_grad_()
        attributes = [normal(16, 3, name="edges")] if name in ("gine", "cg") else []
        outputs = fill(layer)(nodes, edges(), *attributes)
        outputs.square().sum().backward()
        results |= {name: outputs, f"gradient.{name}": nodes.grad}
    return results


@program("torch_geometric", "classifier", compiled=True)
def classifier():
    import torch
    from torch_geometric import nn
    from torch_geometric.data import Batch, Data

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.GCNConv(8, 16), nn.GATConv(16, 16, heads=2, concat=False)
            self.norm, self.head = nn.GraphNorm(16), torch.nn.Linear(32, 3)

        def forward(self, graphs):
            nodes = self.first(graphs.x, graphs.edge_index).relu()
            nodes = self.norm(self.second(nodes, graphs.edge_index), graphs.batch).relu()
            pooled = nn.global_mean_pool(nodes, graphs.batch, len(graphs))
            largest = nn.global_max_pool(nodes, graphs.batch, len(graphs))
            return self.head(torch.cat([pooled, largest], 1))

    graphs = [Data(x=normal(8, 8, name=f"nodes{index}"), edge_index=edges()) for index in range(3)]
    batch, labels = Batch.from_data_list(graphs), integers(3, 3, name="labels")
    batch_size = len(graphs)

    def loss_of(model):
        scores = model(batch)
        return torch.nn.functional.cross_entropy(scores, labels[:batch_size]), scores

    return train(fill(Model()), loss_of)


@program("torch_geometric", "functions")
def functions():
    from torch_geometric import utils

    nodes, places = normal(8, 4, name="nodes"), integers(3, 8, name="places").sort().values
    results = {
        reduction: utils.scatter(nodes, places, reduce=reduction)
        for reduction in ("sum", "mean", "max", "min", "mul")
    }
    laplacian = utils.get_laplacian(edges(), normalization="sym")
    results |= named(laplacian, "laplacian") | {"softmax": utils.softmax(nodes, places)}
    results |= named(utils.to_dense_batch(nodes, places), "dense")
    results["adjacency"] = utils.to_dense_adj(edges())
    results |= {"undirected": utils.to_undirected(edges()), "degree": utils.degree(edges()[0])}
    return results | named(utils.add_self_loops(edges()), "loops")
