"""Normalizing flows: zuko, nflows and normflows."""

from harness import fill, gradients, named, normal, program, train


def zuko_flow(name, **sizes):
    import zuko

    return fill(getattr(zuko.flows, name)(3, 2, **sizes))


@program("zuko", "densities", dtype="float64")
def densities():
    """The log density of the flows of zuko with its gradients."""
    points, context = normal(5, 3, name="points"), normal(5, 2, name="context")
    small = {"transforms": 2, "hidden_features": (8, 8)}
    flows = {
        "MAF": small,
        "NSF": small | {"bins": 4},
        "NICE": small,
        "SOSPF": small,
        "BPF": small,
        "NAF": small,
        "UNAF": small,
        "GF": small,
    }
    results = {}
    for name, sizes in flows.items():
        flow, inputs = zuko_flow(name, **sizes), points.clone().requires_grad_()
        density = flow(context).log_prob(inputs)
        density.sum().backward()
        results |= {name: density, f"gradient.{name}": inputs.grad}
        results |= named(gradients(flow), name)
    return results


@program("zuko", "neural_spline", dtype="float64", compiled=True)
def neural_spline():
    points, context = normal(5, 3, name="points"), normal(5, 2, name="context")
    flow = zuko_flow("NSF", transforms=2, bins=4, hidden_features=(8, 8))
    results = train(flow, lambda flow: -flow(context).log_prob(points).mean())
    forward = flow(context).transform
    moved = forward(points)
    return results | {"moved": moved, "back": forward.inv(moved)}


@program("zuko", "continuous", dtype="float64", tolerance=1e-6)
def continuous():
    points, context = normal(5, 3, name="points"), normal(5, 2, name="context")
    flow = zuko_flow("CNF", hidden_features=(8,))
    return train(flow, lambda flow: -flow(context).log_prob(points).mean())


@program("nflows", "autoregressive", dtype="float64", compiled=True)
def autoregressive():
    from nflows import distributions, flows, transforms

    spline = transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        features=3, hidden_features=8, num_bins=4, tails="linear", tail_bound=3.0, num_blocks=1
    )
    parts = [
        transforms.MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        transforms.ReversePermutation(features=3),
        spline,
        transforms.LULinear(3),
    ]
    composite = transforms.CompositeTransform(parts)
    flow = fill(flows.Flow(composite, distributions.StandardNormal([3])))
    points = normal(5, 3, name="points")
    return train(flow, lambda flow: -flow.log_prob(points).mean())


@program("nflows", "coupling", dtype="float64")
def coupling():
    import torch
    from nflows import distributions, flows, transforms
    from nflows.nn.nets import ResidualNet

    def network(inputs, outputs):
        return ResidualNet(inputs, outputs, hidden_features=8, num_blocks=1)

    parts = [
        transforms.AffineCouplingTransform(torch.tensor([1, 0, 1, 0]), network),
        transforms.PiecewiseQuadraticCouplingTransform(
            torch.tensor([0, 1, 0, 1]), network, num_bins=4, tails="linear", tail_bound=3.0
        ),
        transforms.BatchNorm(4),
    ]
    composite = transforms.CompositeTransform(parts)
    flow = fill(flows.Flow(composite, distributions.StandardNormal([4])))
    points = normal(6, 4, name="points")
    results = train(flow, lambda flow: -flow.log_prob(points).mean())
    flow.eval()
    latent = flow.transform_to_noise(points)
    return results | {"latent": latent, "back": flow._transform.inverse(latent)[0]}


def train_normflow(layers, width=2):
    import normflows

    flow = fill(normflows.NormalizingFlow(normflows.distributions.DiagGaussian(width), layers))
    points = normal(6, width, name="points")
    return train(flow, lambda flow: flow.forward_kld(points))


@program("normflows", "real_nvp", dtype="float64", compiled=True)
def real_nvp():
    import normflows

    layers = []
    for _ in range(2):
        network = normflows.nets.MLP([1, 8, 2], init_zeros=True)
        layers += [normflows.flows.AffineCouplingBlock(network)]
        layers += [normflows.flows.Permute(2, mode="swap")]
    return train_normflow(layers)


@program("normflows", "splines", dtype="float64")
def splines():
    import normflows

    linear = normflows.flows.LULinearPermute(2)
    linear.permutation._permutation.copy_(linear.permutation._permutation.new_tensor([1, 0]))
    return train_normflow(
        [
            normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8, num_bins=4),
            linear,
            normflows.flows.CoupledRationalQuadraticSpline(2, 1, 8, num_bins=4),
        ]
    )


@program("normflows", "planar_and_radial", dtype="float64")
def planar_and_radial():
    import normflows

    results, points = {}, normal(6, 2, name="points")
    for layer in (
        normflows.flows.Planar((2,), act="leaky_relu"),
        normflows.flows.Radial((2,)),
        normflows.flows.MaskedAffineFlow(points.new_tensor([1.0, 0.0])),
    ):
        name = type(layer).__name__
        moved, volume = fill(layer)(points)
        results |= {f"moved.{name}": moved, f"volume.{name}": volume}
    return results
