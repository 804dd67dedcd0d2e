"""Networks that rotate with their input: e3nn."""

from harness import fill, gradients, named, normal, program, train


def scale_activations(module):
    """Set the constants of activations, which e3nn estimates from random numbers; return it."""
    for part in module.modules():
        if hasattr(part, "cst"):
            part.cst, part._is_id = 1.5, False
    return module


@program("e3nn", "functions", dtype="float64")
def functions():
    import torch
    from e3nn import o3

    vectors = normal(5, 3, name="vectors").requires_grad_()
    harmonics = o3.spherical_harmonics([0, 1, 2, 3], vectors, normalize=True)
    (harmonics * normal(16, name="weights")).sum().backward()
    angles = [torch.tensor(value) for value in (0.3, 0.8, -1.2)]
    results = {"harmonics": harmonics, "gradient": vectors.grad}
    results |= {f"wigner_3j.{degree}": o3.wigner_3j(1, degree, 2) for degree in (1, 2, 3)}
    results |= {f"wigner_d.{degree}": o3.wigner_D(degree, *angles) for degree in (1, 2)}
    results["matrix"] = o3.angles_to_matrix(*angles)
    results["representation"] = o3.Irreps("0e + 2x1o + 2e").D_from_angles(*angles)
    return results


@program("e3nn", "layers", dtype="float64")
def layers():
    from e3nn import nn, o3

    irreps = o3.Irreps("4x0e + 2x1o + 1x2e")
    products = {
        "full": o3.FullyConnectedTensorProduct(irreps, "1x0e + 1x1o", irreps),
        "tensor": o3.FullTensorProduct(irreps, "1x0e + 1x1o"),
        "element": o3.ElementwiseTensorProduct(irreps, "7x0e"),
    }
    results = {}
    for name, product in products.items():
        left = normal(3, product.irreps_in1.dim, name="left").requires_grad_()
        outputs = fill(product)(left, normal(3, product.irreps_in2.dim, name="right"))
        outputs.square().sum().backward()
        results |= {name: outputs, f"gradient.{name}": left.grad}
        results |= named(gradients(product), name)
    singles = {
        "linear": o3.Linear(irreps, irreps),
        "norm": o3.Norm(irreps),
        "batch_norm": nn.BatchNorm(irreps),
        "gate": nn.Activation("4x0e", [lambda values: values.tanh()]),
    }
    for name, layer in singles.items():
        width = 4 if name == "gate" else irreps.dim
        results[name] = scale_activations(fill(layer))(normal(3, width, name="single"))
    return results


@program("e3nn", "convolution", dtype="float64", compiled=True)
def convolution():
    import torch
    from e3nn import nn, o3
    from e3nn.math import soft_one_hot_linspace

    places, ends = (
        normal(6, 3, name="places"),
        torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]),
    )
    nodes = normal(6, 4, name="nodes")

    class Convolution(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sphere = o3.Irreps.spherical_harmonics(2)
            self.product = o3.FullyConnectedTensorProduct(
                "4x0e", self.sphere, "4x0e + 2x1o", shared_weights=False
            )
            self.weights = nn.FullyConnectedNet([5, 8, self.product.weight_numel], torch.relu)

        def forward(self, nodes):
            offsets = places[ends[1]] - places[ends[0]]
            angles = o3.spherical_harmonics(self.sphere, offsets, normalize=True)
            lengths = soft_one_hot_linspace(offsets.norm(dim=1), 0.0, 3.0, 5, "gaussian", False)
            messages = self.product(nodes[ends[0]], angles, self.weights(lengths))
            return torch.zeros(6, messages.shape[1]).index_add(0, ends[1], messages)

    def loss_of(model):
        outputs = model(nodes)
        return outputs.square().mean(), outputs

    return train(scale_activations(fill(Convolution())), loss_of)
