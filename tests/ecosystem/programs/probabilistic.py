"""Probabilistic programs in pyro, with equal noise where there is noise."""

from harness import fill, named, normal, program, train, uniform


def regression(inputs, targets=None):
    import pyro
    import torch
    from pyro import distributions

    weights = pyro.sample("weights", distributions.Normal(torch.zeros(2), 1.0).to_event(1))
    scale = pyro.sample("scale", distributions.LogNormal(0.0, 0.5))
    with pyro.plate("data", len(inputs)):
        pyro.sample("targets", distributions.Normal(inputs @ weights, scale), obs=targets)


def data():
    inputs = normal(10, 2, name="inputs")
    return inputs, inputs @ inputs.new_tensor([1.0, -2.0]) + 0.1 * normal(10, name="noise")


@program("pyro-ppl", "log_density", module="pyro", dtype="float64")
def log_density():
    import pyro
    from pyro import poutine

    inputs, targets = data()
    values = {"weights": normal(2, name="weights"), "scale": uniform(name="scale") + 0.5}
    for value in values.values():
        value.requires_grad_()
    trace = poutine.trace(pyro.condition(regression, data=values)).get_trace(inputs, targets)
    density = trace.log_prob_sum()
    density.backward()
    results = {name: site["log_prob"] for name, site in trace.nodes.items() if "log_prob" in site}
    results |= {f"gradient.{name}": value.grad for name, value in values.items()}
    return results | {"density": density}


@program("pyro-ppl", "variational", module="pyro", dtype="float64", compiled=True)
def variational():
    import pyro
    import torch
    from pyro import distributions

    class Guide(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.place = torch.nn.Parameter(normal(2, name="place"))
            self.log_width = torch.nn.Parameter(normal(2, name="width"))

        def forward(self, inputs, targets):
            # A delta site whose value is reparametrized by equal noise in both frameworks.
            weights = self.place + self.log_width.exp() * normal(2, name="draw")
            density = distributions.Normal(self.place, self.log_width.exp()).log_prob(weights).sum()
            delta = distributions.Delta(weights, log_density=density, event_dim=1)
            pyro.sample("weights", delta)
            pyro.sample("scale", distributions.Delta(self.place.square().sum().add(0.5)))

    bound = pyro.infer.Trace_ELBO()
    return train(Guide(), lambda guide: bound.differentiable_loss(regression, guide, *data()))


@program("pyro-ppl", "autoguides", module="pyro", dtype="float64")
def autoguides():
    import pyro
    import torch
    from pyro.infer import autoguide

    inputs, targets = data()
    kinds = {
        "delta": autoguide.AutoDelta,
        "normal": autoguide.AutoNormal,
        "diagonal": autoguide.AutoDiagonalNormal,
        "multivariate": autoguide.AutoMultivariateNormal,
        "low_rank": lambda model: autoguide.AutoLowRankMultivariateNormal(model, rank=1),
    }
    results = {}
    for name, kind in kinds.items():
        pyro.clear_param_store()
        guide = kind(regression)
        guide(inputs, targets)
        with torch.no_grad():
            fill(guide)
        medians = guide.median(inputs, targets)
        results |= named(medians, f"{name}.median")
        if hasattr(guide, "get_posterior"):
            point = normal(guide.latent_dim, name="point")
            results[f"{name}.density"] = guide.get_posterior().log_prob(point)
        if hasattr(guide, "quantiles"):
            results |= named(guide.quantiles([0.1, 0.9], inputs, targets), f"{name}.quantiles")
    return results


@program("pyro-ppl", "svi", module="pyro", dtype="float64")
def svi():
    import pyro
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoDelta, init_to_value

    pyro.clear_param_store()
    start = {"weights": normal(2, name="start"), "scale": uniform(name="scale") + 0.5}
    guide = AutoDelta(regression, init_loc_fn=init_to_value(values=start))
    optimizer = pyro.optim.ClippedAdam({"lr": 0.05, "lrd": 0.99})
    steps = SVI(regression, guide, optimizer, loss=Trace_ELBO())
    losses = [steps.step(*data()) for _ in range(5)]
    parameters = dict(pyro.get_param_store().items())
    return {"losses": losses} | named(parameters, "parameter")


@program("pyro-ppl", "enumeration", module="pyro", dtype="float64", compiled=True)
def enumeration():
    import pyro
    import torch
    from pyro import distributions
    from pyro.infer import TraceEnum_ELBO, config_enumerate

    sequence = normal(5, name="sequence")

    class Chain(torch.nn.Module):
        """The parameters of a hidden Markov model."""

        def __init__(self):
            super().__init__()
            self.transitions = torch.nn.Parameter(normal(3, 3, name="transitions"))
            self.places = torch.nn.Parameter(normal(3, name="places"))

    def model_of(chain):
        @config_enumerate
        def model():
            state = pyro.sample("start", distributions.Categorical(torch.ones(3) / 3))
            for index in pyro.markov(range(5)):
                logits = chain.transitions[state]
                state = pyro.sample(f"state{index}", distributions.Categorical(logits=logits))
                observed = distributions.Normal(chain.places[state], 0.5)
                pyro.sample(f"value{index}", observed, obs=sequence[index])

        return model

    bound = TraceEnum_ELBO(max_plate_nesting=0)

    def loss_of(chain):
        return bound.differentiable_loss(model_of(chain), lambda: None)

    return train(Chain(), loss_of)


@program("pyro-ppl", "hmm_distribution", module="pyro", dtype="float64")
def hmm_distribution():
    import torch
    from pyro import distributions

    start, steps = normal(3, name="start"), normal(5, 3, 3, name="steps").requires_grad_()
    emitted = distributions.Normal(normal(3, name="places"), torch.ones(3))
    chain = distributions.DiscreteHMM(start, steps, emitted, duration=5)
    density = chain.log_prob(normal(5, name="sequence"))
    density.backward()
    vonmises = distributions.VonMises(torch.tensor(0.3), torch.tensor(2.0))
    spline = fill(distributions.transforms.spline_coupling(4, count_bins=4, hidden_dims=[8]))
    points = normal(6, 4, name="points")
    moved = spline(points)
    return {
        "density": density,
        "gradient": steps.grad,
        "filter": chain.filter(normal(5, name="sequence")).logits,
        "vonmises": vonmises.log_prob(points),
        "moved": moved,
        "volume": spline.log_abs_det_jacobian(points, moved),
    }


@program("pyro-ppl", "nuts_energy", module="pyro", dtype="float64")
def nuts_energy():
    import torch
    from pyro.infer.mcmc.util import initialize_model
    from pyro.ops.integrator import velocity_verlet

    _, energy, transforms, _ = initialize_model(regression, model_args=data())
    places = {"weights": normal(2, name="weights"), "scale": torch.tensor(0.1)}
    speeds = {"weights": normal(2, name="speeds"), "scale": torch.tensor(-0.3)}

    def gradient_of_kinetic(speeds):
        return speeds

    moved = velocity_verlet(places, speeds, energy, gradient_of_kinetic, 0.01, num_steps=5)
    return named(moved, "moved") | {"energy": energy(places), "count": len(transforms)}
