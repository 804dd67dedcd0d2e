"""The names of the package functorch and of PyTorch's private modules of transforms. The expected
values are PyTorch's.
"""

import subprocess
import sys

import pytest

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad._C import _functorch
from jaxgrad._functorch.apis import chunk_vmap
from jaxgrad._functorch.make_functional import (
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from jaxgrad._functorch.vmap import get_chunk_sizes, restore_vmap, vmap_impl

X = torch.tensor([1.0, 2.0])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def filled(module):
    """The module with simple numbers."""
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            values = torch.arange(parameter.numel()).view(parameter.shape)
            parameter.copy_(values / 10 + number)
    return module


def test_a_module_as_a_function_of_its_parameters():
    module = filled(Tied())
    functional, parameters = make_functional(module)
    assert [(type(p), tuple(p.shape)) for p in parameters] == [
        (nn.Parameter, (2, 2)),
        (nn.Parameter, (2,)),
    ]
    assert torch.allclose(functional(parameters, X), torch.tensor([1.08, 1.38]))
    assert functional([p * 0 for p in parameters], X).tolist() == [0, 0]
    functional(parameters, X).sum().backward()
    assert torch.allclose(parameters[0].grad, torch.tensor([[0.4, 1.2], [0.6, 1.6]]))
    assert module.a.weight.grad is None
    assert next(functional.parameters()).is_meta
    _, untracked = make_functional(module, disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in untracked)


def test_a_module_as_a_function_of_its_buffers():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    with pytest.raises(RuntimeError, match=r"has buffers.*make_functional_with_buffers"):
        make_functional(module)
    functional, parameters, buffers = make_functional_with_buffers(filled(module))
    assert len(parameters) == 4 and [tuple(b.shape) for b in buffers] == [(3,), (3,), ()]
    functional(parameters, buffers, torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert torch.allclose(buffers[0], torch.tensor([0.135, 0.255, 0.375])) and buffers[2] == 1
    assert module[1].running_mean.tolist() == [0, 0, 0]


def test_an_ensemble():
    models = [filled(nn.Linear(2, 1)) for _ in range(3)]
    functional, parameters, buffers = combine_state_for_ensemble(models)
    assert [tuple(p.shape) for p in parameters] == [(3, 1, 2), (3, 1)] and buffers == ()
    results = torch.vmap(functional, (0, 0, None))(parameters, buffers, X)
    assert torch.allclose(results, torch.full((3, 1), 1.2))
    for models, words in (
        ([], "at least one model, got 0"),
        ([nn.Linear(2, 1), nn.ReLU()], "of the same class"),
        ([nn.Linear(2, 1), nn.Linear(2, 1).eval()], "the same training/eval mode"),
    ):
        with pytest.raises(RuntimeError, match=words):
            combine_state_for_ensemble(models)


def test_vmap_in_so_many_chunks():
    assert chunk_vmap(torch.neg, chunks=2)(torch.arange(5)).tolist() == [0, -1, -2, -3, -4]
    summed = chunk_vmap(torch.add, (1, None), 1, chunks=3)(torch.ones(2, 4), torch.ones(2))
    assert summed.tolist() == [[2.0] * 4] * 2


def test_what_wraps_a_tensor():
    kinds = []

    def see(x):
        names = "is_batchedtensor", "is_gradtrackingtensor", "maybe_get_bdim", "maybe_get_level"
        kinds.append(tuple(getattr(_functorch, name)(x) for name in names))
        return x

    y, grad, vmap = torch.ones(2, 3), torch.func.grad, torch.vmap
    see(y)
    vmap(lambda a: see(a).sum(), in_dims=1)(y)
    grad(lambda a: see(a).sum())(y)
    vmap(lambda a: (see(a * 2), see(y), see(a * 0 + y), see(torch.ones(3)))[0])(y)
    vmap(grad(lambda a: see(a).sum()))(y)
    grad(lambda a: vmap(lambda b: see(b) * 2)(a).sum())(y)
    assert kinds == [
        (False, False, -1, -1),
        (True, False, 1, 1),
        (False, True, -1, 1),
        (True, False, 0, 1),
        (False, False, -1, -1),
        (True, False, 0, 1),
        (False, False, -1, -1),
        (False, True, -1, 2),
        (True, False, 0, 2),
    ]


def test_the_stack_of_transforms():
    seen, ones = [], torch.ones(2, 3)

    def see(x):
        innermost = _functorch.peek_interpreter_stack()
        kinds = [one.key().name for one in _functorch.get_interpreter_stack()]
        assert innermost.level() == _functorch.current_level() == len(kinds)
        assert _functorch.get_dynamic_layer_stack_depth() == len(kinds)
        seen.append(kinds)
        return x

    torch.vmap(torch.func.grad(lambda x: torch.vmap(see)(x).sum()))(ones)
    torch.func.jvp(see, (ones,), (ones,))
    assert seen == [["Vmap", "Grad", "Vmap"], ["Jvp"]]
    assert _functorch.peek_interpreter_stack() is _functorch.get_interpreter_stack() is None
    assert _functorch.maybe_current_level() is None
    with pytest.raises(RuntimeError):
        _functorch.current_level()


def test_results_with_their_mapped_dimensions():
    x, y = torch.arange(6.0).view(2, 3), torch.ones(3)
    added = restore_vmap(lambda x, y: (x + y, y * 2), (0, None), 2, "error")
    (total, twice), dims = added(x, y)
    assert total.tolist() == [[1, 2, 3], [4, 5, 6]] and twice.tolist() == [2] * 3
    assert dims == (0, None)
    one_more, dim = restore_vmap(lambda y: y + 1, (None,), 3, "error")(y)
    assert one_more.tolist() == [2] * 3 and dim is None
    of_dict = restore_vmap(lambda d: {"a": d["x"].sum()}, ({"x": 1},), 3, "error")
    results, dims = of_dict({"x": x})
    assert results["a"].tolist() == [3, 5, 7] and dims == {"a": 0}

    def nested(z):
        (shared, own), dims = restore_vmap(lambda y: (y * z, y), (0,), 3, "error")(y)
        assert dims == (0, 0)
        return shared + own

    assert torch.vmap(nested)(x[0]).tolist() == [[1] * 3, [2] * 3, [3] * 3]
    assert get_chunk_sizes(7, 3) == [3, 3, 1] and get_chunk_sizes(6, 3) == [3, 3]
    assert vmap_impl(torch.mul, (0, None), 1, "error", 1, x, y).tolist() == x.t().tolist()


def test_the_tensor_of_all_examples():
    y, shown = torch.arange(6).view(2, 3), []
    torch.vmap(lambda a: shown.append(_functorch.get_unwrapped(a).tolist()) or a, 1)(y)
    assert shown == [y.tolist()]
    with pytest.raises(RuntimeError, match="no tensor of all examples"):
        torch.vmap(lambda a: _functorch.get_unwrapped(a * 2))(y)
    with pytest.raises(RuntimeError, match="no transform wraps"):
        _functorch.get_unwrapped(y)


def test_merged_and_split_dimensions():
    x = torch.arange(24).view(2, 3, 4)
    assert _functorch.reshape_dim_into(0, -1, x)[0].tolist() == [0, 1, 2, 3, 12, 13, 14, 15]
    assert _functorch.reshape_dim_outof(-1, 2, x).equal(x.view(2, 3, 2, 2))


@pytest.mark.slow
def test_the_package_functorch():
    code = (
        "import jaxgrad.compat; jaxgrad.compat.install()\n"
        "import functorch\nfrom functorch.experimental import chunk_vmap, control_flow\n"
        "import torch\nassert control_flow.cond is torch.cond\n"
        "import torch._functorch.apis, torch._vmap_internals\n"
        "from functorch._src.eager_transforms import _slice_argnums\n"
        "import functorch._src.vmap\n"
        "assert functorch.vmap is torch.func.vmap is torch._functorch.apis.vmap\n"
        "assert torch._vmap_internals.vmap is torch.vmap and torch._C._functorch"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arguments_by_position():
    from jaxgrad._functorch.eager_transforms import _slice_argnums

    args = (0.1, 1.1), 2.0, [3.1]
    assert _slice_argnums(args, -1) == ([3.1],)
    assert _slice_argnums(args, (1, 0)) == (2.0, (0.1, 1.1))
    assert _slice_argnums(args, 1, as_tuple=False) == 2.0
    errors = [
        (0.0, "int or Tuple"),
        ([0], "int or Tuple"),
        ((0.0,), "must be int"),
        (3, "positional inputs"),
        ((), "must be non-empty"),
        ((0, -3), "must be unique"),
    ]
    for argnums, message in errors:
        with pytest.raises(RuntimeError, match=message):
            _slice_argnums(args, argnums)
