"""jaxgrad.nn.utils.parametrize and parametrizations."""

import copy

import numpy
import pytest
from helpers.as_torch import as_torch, error, parameters

import jaxgrad
from jaxgrad import nn

FUNCTIONS = (
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
)


def utils(torch):
    return torch.nn.utils.parametrize, torch.nn.utils.parametrizations


def linear(torch, rows=3, columns=3):
    """A linear layer with the same weights in both libraries."""
    layer = torch.nn.Linear(columns, rows).to(torch.float64)
    count = torch.arange(rows * columns, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(count.reshape(rows, columns).sin() + torch.eye(rows, columns))
        layer.bias.copy_(count[:rows] / 4)
    return layer


def classes(torch):
    """Parametrizations: by name, a class."""

    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    class Exponential(torch.nn.Module):
        def forward(self, x):
            return x.exp()

        def right_inverse(self, x):
            return x.log()

    class Pair(torch.nn.Module):
        def forward(self, x, y):
            return x @ y

        def right_inverse(self, x):
            return x, torch.eye(x.shape[-1], dtype=x.dtype)

    class Wider(torch.nn.Module):
        def forward(self, x):
            return torch.cat([x, x])

    class Rounded(torch.nn.Module):
        def forward(self, x):
            return x.float()

    class Lost(torch.nn.Module):
        def forward(self, x):
            return None

    return locals()


def after_backward(torch, layer):
    """What the layer computes, the gradients and the state dict."""
    x = torch.arange(3.0, dtype=torch.float64).reshape(1, -1)[:, : layer.in_features] + 1
    y = layer(x)
    layer.zero_grad()
    y.square().sum().backward()
    grads = {name: parameter.grad for name, parameter in layer.named_parameters()}
    return y, grads, dict(layer.state_dict())


@as_torch
def test_signatures_of_parametrize(torch):
    parametrize, parametrizations = utils(torch)
    signatures = {name: parameters(getattr(parametrize, name)) for name in FUNCTIONS}
    names = ("orthogonal", "spectral_norm", "weight_norm")
    return signatures, {name: parameters(getattr(parametrizations, name)) for name in names}


@pytest.mark.slow
@as_torch(precision=1e-12)
def test_a_parametrized_weight(torch):
    parametrize, _ = utils(torch)
    known, layer = classes(torch), linear(torch)
    results = [parametrize.is_parametrized(layer)]
    assert parametrize.register_parametrization(layer, "weight", known["Symmetric"]()) is layer
    results += [after_backward(torch, layer), type(layer).__name__, repr(layer)]
    results += [parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")]
    layer.weight = torch.ones(3, 3, dtype=torch.float64) * 2
    results += [layer.weight, layer.parametrizations.weight.original]
    parametrize.register_parametrization(layer, "weight", known["Exponential"]())
    parametrize.register_parametrization(layer, "bias", known["Exponential"]())
    results += [layer.weight, list(layer.state_dict()), len(layer.parametrizations.weight)]
    layer.weight = torch.ones(3, 3, dtype=torch.float64) * 4
    results += [layer.parametrizations.weight.original, after_backward(torch, layer)]
    parametrize.remove_parametrizations(layer, "weight")
    results += [layer.weight, list(layer.state_dict()), type(layer).__name__]
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    return [*results, layer.bias, list(layer.state_dict()), type(layer) is torch.nn.Linear]


@pytest.mark.slow
@as_torch(precision=1e-12)
def test_a_weight_of_several_tensors(torch):
    parametrize, _ = utils(torch)
    known, layer = classes(torch), linear(torch)
    parametrize.register_parametrization(layer, "weight", known["Pair"]())
    parametrize.register_parametrization(layer, "weight", known["Exponential"]())
    results = [after_backward(torch, layer), list(layer.state_dict())]
    layer.weight = torch.full((3, 3), 3.0, dtype=torch.float64)
    other = linear(torch)
    parametrize.transfer_parametrizations_and_params(layer, other)
    results += [layer.weight, other.weight, other.parametrizations.weight.original0]
    remove = parametrize.remove_parametrizations
    results.append(error(lambda: remove(layer, "weight", leave_parametrized=False)))
    remove(layer, "weight")
    return [*results, layer.weight, list(layer.state_dict())]


@as_torch(
    """
    tensor([2.0, 3.0])
    {'parametrizations.table.original': tensor([0.6931471824645996, 1.0986123085021973])}
    tensor([2.0, 3.0])
    {'table': tensor([2.0, 3.0])}
    """,
    precision=1e-12,
)
def test_a_parametrized_buffer(torch):
    parametrize, _ = utils(torch)
    known, module = classes(torch), torch.nn.Module()
    module.register_buffer("table", torch.tensor([2.0, 3.0]))
    parametrize.register_parametrization(module, "table", known["Exponential"]())
    results = [module.table, dict(module.state_dict())]
    parametrize.remove_parametrizations(module, "table")
    return [*results, module.table, dict(module.state_dict())]


@as_torch
def test_parametrizations_that_do_not_fit(torch):
    parametrize, _ = utils(torch)
    register, known = parametrize.register_parametrization, classes(torch)
    results = []
    for name in ("Wider", "Rounded", "Lost"):
        layer, wrong = linear(torch), known[name]()
        results.append(error(register, layer, "weight", wrong))
        results.append(parametrize.is_parametrized(layer))
        register(layer, "weight", known["Symmetric"]())
        results.append(error(register, layer, "weight", wrong))
    register(layer, "bias", known["Rounded"](), unsafe=True)
    results += [layer.bias, error(setattr, layer, "bias", layer.bias)]
    results.append(error(lambda: register(layer, "other", known["Rounded"]())))
    results.append(error(lambda: parametrize.remove_parametrizations(layer, "other")))
    results.append(error(lambda: parametrize.ParametrizationList([], torch.ones(1))))
    words = "Serialization of parametrized modules is only supported through state_dict()"
    return [*results, error(layer.__getstate__, words=words)]


@as_torch("""
    True
    1
    False
    2
""")
def test_cached_parametrizations(torch):
    parametrize, _ = utils(torch)
    layer, calls = linear(torch), []

    class Counted(torch.nn.Module):
        def forward(self, x):
            calls.append(None)
            return x * 2

    parametrize.register_parametrization(layer, "weight", Counted(), unsafe=True)
    calls.clear()
    with parametrize.cached():
        same = layer.weight is layer.weight
        with parametrize.cached():
            inner = layer.weight
        same = same and inner is layer.weight
    return same, len(calls), layer.weight is inner, len(calls)


@pytest.mark.slow
@as_torch(precision=1e-7)
def test_orthogonal_maps(torch):
    _, parametrizations = utils(torch)
    results = []
    for name in ("matrix_exp", "cayley", "householder"):
        layer = parametrizations.orthogonal(linear(torch), "weight", name)
        results += [layer.weight, after_backward(torch, layer)[:2], list(layer.state_dict())]
        layer.weight = torch.eye(3, dtype=torch.float64).flip(0)
        results.append(layer.weight)
        for rows, columns in ((3, 2), (2, 3))[name == "cayley" :]:
            layer = linear(torch, rows, columns)
            parametrizations.orthogonal(layer, "weight", name, use_trivialization=False)
            results += [layer.weight, after_backward(torch, layer)]
            value = layer.weight.detach()
            if name == "householder":
                layer.weight = -value
                results.append(layer.weight)
            else:
                results.append(error(setattr, layer, "weight", value))
    return results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "kind"), [((2, 4), "complex128"), ((4, 2), "float64"), ((2, 3, 3), "complex128")]
)
def test_orthogonal_weights_that_begin_by_chance(shape, kind):
    module, dtype = nn.Module(), getattr(jaxgrad, kind)
    start = jaxgrad.randn(*shape, dtype=dtype)
    module.register_parameter("weight", nn.Parameter(start))
    nn.utils.parametrizations.orthogonal(module)
    w = module.weight
    product = w @ w.mH if shape[-2] < shape[-1] else w.mH @ w
    expected = jaxgrad.eye(min(shape[-2:]), dtype=dtype).expand(product.shape)
    assert jaxgrad.allclose(product, expected)
    q, _ = numpy.linalg.qr(start.mT.numpy() if shape[-2] < shape[-1] else start.numpy())
    projector = q @ q.conj().swapaxes(-1, -2)
    ours = w.detach().mT.numpy() if shape[-2] < shape[-1] else w.detach().numpy()
    numpy.testing.assert_allclose(projector @ ours, ours, atol=1e-10)  # the span is kept


@pytest.mark.slow
@as_torch
def test_weights_that_cannot_be_orthogonal(torch):
    _, parametrizations = utils(torch)
    layer = linear(torch)
    complex_layer = torch.nn.Linear(2, 2, dtype=torch.complex64)
    orthogonal = parametrizations.orthogonal
    errors = [
        error(orthogonal, layer, "other"),
        error(orthogonal, layer, "bias"),
        error(orthogonal, layer, "weight", "rotation"),
        error(orthogonal, complex_layer, "weight", "householder"),
    ]
    orthogonal(layer)
    return [*errors, error(setattr, layer, "weight", torch.ones(2, 2, dtype=torch.float64))]


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_weight_norm_as_a_parametrization(torch):
    _, parametrizations = utils(torch)
    results = []
    for dim in (0, 1, None):
        layer = parametrizations.weight_norm(linear(torch, 2, 3), dim=dim)
        results += [layer.weight, after_backward(torch, layer)]
    older = {"bias": layer.bias, "weight_g": torch.tensor(2.0), "weight_v": torch.ones(2, 3)}
    layer.load_state_dict(older)
    return [*results, layer.weight]


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_spectral_norm_as_a_parametrization(torch):
    _, parametrizations = utils(torch)
    spectral_norm, results = parametrizations.spectral_norm, []
    start = torch.tensor([0.6, 0.8], dtype=torch.float64), torch.tensor([0.0, 0.6, 0.8])
    for dim in (0, 1):
        layer = spectral_norm(linear(torch, 2, 3), n_power_iterations=2, eps=1e-9, dim=dim)
        results.append({name: list(tensor.shape) for name, tensor in layer.state_dict().items()})
        u, v = start if dim == 0 else start[::-1]
        layer.parametrizations.weight[0]._u.copy_(u)
        layer.parametrizations.weight[0]._v.copy_(v)
        results += [after_backward(torch, layer), layer.eval().weight, layer.weight]
    transposed = spectral_norm(torch.nn.ConvTranspose1d(3, 2, 2))
    results.append(list(transposed.parametrizations.weight[0]._u.shape))
    layer = spectral_norm(linear(torch), "bias")
    words = "Dimension out of range (expected to be in range of [-2, 1] but got 2)"
    refused = error(lambda: spectral_norm(linear(torch), dim=2), words=words)
    return [*results, layer.bias, refused, error(spectral_norm, linear(torch), "weight", 0)]


def test_copies_of_parametrized_modules_are_apart():
    layer = nn.utils.parametrizations.weight_norm(linear(jaxgrad))
    other = copy.deepcopy(layer)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert other.weight.tolist() == layer.weight.tolist()
    other.weight = jaxgrad.ones(3, 3, dtype=jaxgrad.float64)
    assert layer.weight.tolist() != other.weight.tolist()
    assert type(layer) is nn.Linear and isinstance(other, nn.Linear)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["orthogonal", "spectral_norm", "weight_norm", "cached"])
def test_compiled_steps_of_parametrized_modules(kind):
    results = []
    for compiled in (False, True):
        layer = linear(jaxgrad)
        jaxgrad.manual_seed(0)
        getattr(nn.utils.parametrizations, kind.replace("cached", "orthogonal"))(layer)
        optimizer = jaxgrad.optim.SGD(layer.parameters(), lr=0.1)

        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            if kind == "cached":
                with nn.utils.parametrize.cached():
                    loss = (layer(x) * layer(-x)).sum()
            else:
                loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = jaxgrad.jit(step) if compiled else step
        losses = [run(jaxgrad.ones(2, 3, dtype=jaxgrad.float64)).item() for _ in range(3)]
        results.append((losses, layer.eval().weight.detach().numpy()))
        assert not compiled or len(run.traces) == 1
    numpy.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9)
    numpy.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-9)
