"""Optimizers and sparse activations: lion, schedulefree, torch_optimizer, entmax, higher."""

from harness import fill, integers, normal, program, train


def network():
    import torch

    layers = torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    return fill(torch.nn.Sequential(*layers))


def loss_of(model):
    import torch

    scores = model(normal(4, 6, name="inputs"))
    labels = integers(3, 4, name="labels")
    return torch.nn.functional.cross_entropy(scores, labels), scores


@program("lion-pytorch", "lion", compiled=True)
def lion():
    from lion_pytorch import Lion

    model = network()
    return train(model, loss_of, optimizer=Lion(model.parameters(), lr=1e-3, weight_decay=0.1))


@program("schedulefree", "optimizers", dtype="float64")
def schedule_free():
    import schedulefree

    results = {}
    for kind in ("AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"):
        model = network()
        optimizer = getattr(schedulefree, kind)(model.parameters(), lr=1e-2)
        optimizer.train()
        trained = train(model, loss_of, optimizer=optimizer)
        results |= {f"{kind}.{name}": values for name, values in trained.items()}
    return results


@program("schedulefree", "evaluated", compiled=True)
def evaluated():
    import schedulefree

    model = network()
    optimizer = schedulefree.AdamWScheduleFree(model.parameters(), lr=1e-2, foreach=False)
    optimizer.train()
    return train(model, loss_of, optimizer=optimizer)


OPTIMIZERS = (
    "AccSGD",
    "AdaBound",
    "AdaMod",
    "AdamP",
    "AggMo",
    "Apollo",
    "DiffGrad",
    "Lamb",
    "MADGRAD",
    "NovoGrad",
    "PID",
    "QHAdam",
    "QHM",
    "RAdam",
    "Ranger",
    "RangerQH",
    "RangerVA",
    "SGDP",
    "SGDW",
    "SWATS",
    "Shampoo",
    "Yogi",
    "A2GradExp",
)


@program("torch_optimizer", "all", dtype="float64")
def all_optimizers():
    import torch_optimizer

    results = {}
    for kind in OPTIMIZERS:
        model = network()
        optimizer = getattr(torch_optimizer, kind)(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model)[0].backward()
            optimizer.step()
        results |= {f"parameter.{kind}.{name}": p for name, p in model.named_parameters()}
    return results


@program("torch_optimizer", "yogi", compiled=True)
def yogi():
    import torch_optimizer

    model = network()
    return train(model, loss_of, optimizer=torch_optimizer.Yogi(model.parameters(), lr=1e-2))


@program("entmax", "functions", dtype="float64")
def sparse_functions():
    import entmax
    import torch

    labels, results = integers(7, 4, name="labels"), {}
    functions = {
        "sparsemax": entmax.sparsemax,
        "entmax15": entmax.entmax15,
        "entmax_bisect": lambda scores: entmax.entmax_bisect(scores, alpha=1.3),
        "sparsemax_bisect": entmax.sparsemax_bisect,
        "normmax": lambda scores: entmax.normmax_bisect(scores, alpha=3.0),
        "budget": lambda scores: entmax.budget_bisect(scores, budget=2),
        "sparsemax_loss": lambda scores: entmax.sparsemax_loss(scores, labels),
        "entmax15_loss": lambda scores: entmax.entmax15_loss(scores, labels),
        "bisect_loss": lambda scores: entmax.entmax_bisect_loss(scores, labels, alpha=1.3),
    }
    for name, function in functions.items():
        scores = normal(4, 7, name="scores", scale=2.0).requires_grad_()
        values = function(scores)
        (values * torch.arange(1.0, 1 + values.shape[-1])).sum().backward()
        results |= {name: values, f"gradient.{name}": scores.grad}
    return results


@program("entmax", "train", compiled=True)
def sparse_attention():
    import torch
    from entmax import Entmax15

    model = fill(torch.nn.Sequential(network(), Entmax15(-1)))
    inputs = normal(4, 6, name="inputs")
    return train(model, lambda model: (model(inputs).square().mean(), model(inputs)))


@program("higher", "inner_loop", dtype="float64")
def inner_loop():
    """The gradient of a loss after inner steps, by the weights before them."""
    import higher
    import torch

    results = {}
    for kind in (torch.optim.SGD, torch.optim.Adam):
        model = network()
        optimizer = kind(model.parameters(), lr=0.1)
        with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
            for _ in range(2):
                steps.step(loss_of(inner)[0])
            loss = loss_of(inner)[0]
            loss.backward()
        results |= {f"loss.{kind.__name__}": loss} | {
            f"gradient.{kind.__name__}.{name}": p.grad for name, p in model.named_parameters()
        }
    return results
