"""Numbers of a program that depend on its inputs: `item()` of tensors, and sizes."""

import io
import math

import pytest

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.export import Dim, export, load, save
from jaxgrad.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode


def module_of(forward):
    return type("Model", (nn.Module,), {"forward": lambda self, *args: forward(*args)})()


def written(x):
    y = x.clone()
    y[0] = x.sum().item()
    return y


# by a name the code, and what torch 2.13 gives for [1., 2., 4.]
OF_ITEMS = {
    "add": (lambda x: x + x.sum().item(), [8.0, 9.0, 11.0]),
    "clamp": (lambda x: x.clamp(max=x.mean().item()), [1.0, 2.0, 2.3333332538604736]),
    "arithmetic": (
        lambda x: x * (2 * x.max().item() - 1) / x.min().item(),
        [7.0, 14.0, 28.0],
    ),
    "fraction": (lambda x: x.argmax().item() ** -1 * x, [0.5, 1.0, 2.0]),
    "full": (lambda x: torch.full((2,), x.argmax().item()), [2, 2]),
    "fill": (lambda x: torch.zeros(2).fill_(x.sum().item()), [7.0, 7.0]),
    "where": (lambda x: torch.where(x > x.mean().item(), x.max().item(), 0.0), [0.0, 0.0, 4.0]),
    "tensor": (lambda x: torch.tensor([x.sum().item(), 1]), [7.0, 1.0]),
    "round": (lambda x: x * round(x.mean().item()), [2.0, 4.0, 8.0]),
    "floor": (lambda x: x * math.floor(x.mean().item()), [2.0, 4.0, 8.0]),
    "root": (lambda x: x * torch.sym_sqrt(x.max().item()), [2.0, 4.0, 8.0]),
    "larger": (lambda x: x * torch.sym_max(x.min().item(), 1.5), [1.5, 3.0, 6.0]),
    "chosen": (lambda x: x * torch.sym_ite(x.sum().item() > 5, 2.0, 3.0), [2.0, 4.0, 8.0]),
    "index": (lambda x: x[x.argmax().item() - 1], 2.0),
    "write": (written, [7.0, 2.0, 4.0]),
    "number": (lambda x: x.sum().item(), 7.0),
    "count": (lambda x: (x > 1).sum().item(), 2),
    "bool": (lambda x: (x > 1).all().item(), False),
    "dtype": (lambda x: x.long() * (x.mean().item() > 2) + x.argmax().item(), [3, 4, 6]),
}
OF_BRANCHES = {
    "cond": (
        lambda x: torch.cond(x.sum().item() > 5, torch.sin, torch.cos, (x,)),
        [0.8414709568023682, 0.9092974066734314, -0.756802499294281],
    ),
    "sum": (lambda x: sum(x.tolist()), 7.0),
}
# what torch 2.13 gives for rows [1., 2.], three and four of them
OF_SIZES = {
    "root": (lambda x: x[0] * x.shape[0] ** -0.5, [0.5773502588, 1.1547005177], [0.5, 1.0]),
    "inverse": (lambda x: x[0] * x.shape[0] ** -1, [0.3333333433, 0.6666666865], [0.25, 0.5]),
    "product": (lambda x: x[0] * x.numel() ** 0.5, [2.4494898319, 4.8989796638], [8**0.5, 32**0.5]),
    "ratio": (lambda x: x.shape[0] / 2, 1.5, 2.0),
    "test": (lambda x: x.shape[0] > 3, False, True),
    "chosen": (lambda x: x[0] * torch.sym_ite(x.shape[0] > 3, 2, 3), [3.0, 6.0], [2.0, 4.0]),
    "full": (lambda x: torch.full((2,), x.shape[0] ** -0.5), [0.5773502588] * 2, [0.5, 0.5]),
    "difference": (lambda x: x.shape[0] - x[0], [2.0, 1.0], [3.0, 2.0]),
    "both": (
        lambda x: x[0] * ((x.shape[0] > 2) & (x.shape[0] < 4)),
        [1.0, 2.0],
        [0.0, 0.0],
    ),
}
OF_SIZES_IN_BRANCHES = {
    "cond": (
        lambda x: torch.cond(x.shape[0] > 3, torch.sin, torch.cos, (x[0],)),
        [0.5403023362, -0.4161468446],
        [0.8414709568, 0.9092974067],
    ),
    "not": (
        lambda x: torch.cond(torch.sym_not(x.shape[0] > 3), torch.sin, torch.cos, (x[0],)),
        [0.8414709568, 0.9092974067],
        [0.5403023362, -0.4161468446],
    ),
}


def model_of(table):
    return module_of(lambda x: {name: row[0](x) for name, row in table.items()})


def check(results, table, place):
    for name, row in table.items():
        result = results[name]
        if isinstance(result, torch.Tensor):
            expected = torch.tensor(row[place])
            assert result.dtype == expected.dtype, name
            torch.testing.assert_close(result, expected)
        else:
            assert type(result) is type(row[place]) and result == row[place], name


def loaded(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


def run_graph(program, names, *args):
    outputs = torch.fx.Interpreter(program.graph_module).run(*args)
    return dict(zip(names, outputs, strict=True))


def test_items_are_numbers_of_the_program():
    program = export(model_of(OF_ITEMS), (torch.tensor([0.5, 0.25, 0.125]),))
    x = torch.tensor([1.0, 2.0, 4.0])
    saved = loaded(program)
    for module in (program.module(), saved.module()):
        check(module(x), OF_ITEMS, 1)
    for other in (program, saved, program.run_decompositions()):
        check(run_graph(other, OF_ITEMS, x), OF_ITEMS, 1)
    branches = export(model_of(OF_BRANCHES), (torch.ones(3),))
    check(branches.module()(x), OF_BRANCHES, 1)


def test_sizes_make_numbers_of_the_program():
    shapes = ({0: Dim("n", min=2)},)
    program = export(model_of(OF_SIZES), (torch.ones(5, 2),), dynamic_shapes=shapes)
    branches = export(model_of(OF_SIZES_IN_BRANCHES), (torch.ones(5, 2),), dynamic_shapes=shapes)
    saved = loaded(program)
    for count in (3, 4):
        x, place = torch.tensor([[1.0, 2.0]] * count), count - 2
        check(program.module()(x), OF_SIZES, place)
        check(saved.module()(x), OF_SIZES, place)
        check(run_graph(saved, OF_SIZES, x), OF_SIZES, place)
        check(branches.module()(x), OF_SIZES_IN_BRANCHES, place)


def test_the_graph_has_the_nodes_of_pytorch():
    # as torch 2.13 writes them
    def targets(forward, *args, **options):
        nodes = export(module_of(forward), args, **options).graph.nodes
        return [str(node.target) for node in nodes if node.op == "call_function"]

    x = torch.ones(3)
    assert targets(lambda x: x * (2 * x.sum().item()), x) == [
        *("aten.sum.default", "aten.item.default", "<built-in function mul>", "aten.mul.Tensor")
    ]
    assert targets(lambda x: x[x.argmax().item()], x) == [
        *("aten.argmax.default", "aten.item.default", "aten.select.int")
    ]
    shapes = ({0: Dim("n", min=2)},)
    assert targets(lambda x: x * x.shape[0] ** -0.5, x, dynamic_shapes=shapes) == [
        *("aten.sym_size.int", "<built-in function pow>", "aten.mul.Tensor")
    ]


def test_classes_of_numbers():
    kinds = []

    def forward(x):
        numbers = x.shape[0], x.argmax().item(), x.sum().item(), x.sum().item() > 0, x.shape[0] > 3
        kinds[:] = [
            [isinstance(n, kind) for n in numbers]
            for kind in (torch.SymInt, torch.SymFloat, torch.SymBool)
        ]
        assert torch.compiler.is_exporting()
        return x

    export(module_of(forward), (torch.ones(4),), dynamic_shapes=({0: Dim("n", min=2)},))
    assert kinds == [
        [True, True, False, False, False],
        [False, False, True, False, False],
        [False, False, False, True, True],
    ]
    assert not torch.compiler.is_exporting()


def bounded(x):
    count = (x > 0).sum().item()
    torch._check(count >= 1, lambda: "no positive number")
    torch._check(count < 10)
    return x / count if 0 < count < 20 else x


def test_conditions_bound_numbers_and_hold_at_each_call():
    program = export(module_of(bounded), (torch.ones(3),), dynamic_shapes=({0: Dim("n", min=2)},))
    for module in (program.module(), loaded(program).module()):
        assert module(torch.tensor([4.0, -2.0, 2.0])).tolist() == [2.0, -1.0, 1.0]
        with pytest.raises(RuntimeError, match="no positive number"):
            module(-torch.ones(3))
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            module(torch.ones(10))


def test_a_condition_that_fails_changes_nothing():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            torch._assert_async(x.sum() > 0, "no positive sum")
            return x + self.count

    module = export(Counting(), (torch.ones(2),)).module()
    with pytest.raises(RuntimeError, match="no positive sum"):
        module(-torch.ones(2))
    assert module(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x if x.sum().item() > 0 else -x,
        lambda x: x[: x.argmax().item()],
        lambda x: torch.zeros(x.argmax().item()),
        lambda x: x * float(x.sum().item()),
        lambda x: x * int(x.sum().item()),
        lambda x: x * math.sqrt(x.sum().item()),
        lambda x: x * max(x.sum().item(), 1.0),
    ],
)
def test_numbers_that_must_be_known(forward):
    # torch 2.13 raises for all but the second and the third: sizes of numbers are not for XLA
    message = r"Could not guard on data-dependent expression.* At .*test_numbers.py:\d+"
    with pytest.raises(GuardOnDataDependentSymNode, match=message):
        export(module_of(forward), (torch.ones(3),))


def test_conditions_inside_of_branches_are_refused():
    def inner(x):
        torch._check(x.sum().item() > 0)
        return x + 1

    with pytest.raises(NotImplementedError, match="check it outside"):
        export(
            module_of(lambda x: torch.cond(x.sum() > 0, inner, torch.sin, (x,))), (torch.ones(2),)
        )


def test_items_have_no_gradient():
    # the gradient of x * c for the constant c = x.sum()
    model = module_of(lambda x: x * x.sum().item())
    program = export(model, (torch.ones(3),), with_vjp=True)
    for module in (program.module(), loaded(program).module()):
        x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
        module(x).sum().backward()
        assert x.grad.tolist() == [7.0, 7.0, 7.0]


def test_automatic_sizes_become_numbers_where_code_needs_them():
    # math.sqrt of a size fixes it, as torch 2.13 does for Dim.AUTO
    model = module_of(lambda x: x / math.sqrt(x.shape[1]) * x.shape[0] ** -0.5)
    shapes = ({0: Dim.AUTO, 1: Dim.AUTO},)
    program = export(model, (torch.ones(3, 4),), dynamic_shapes=shapes)
    assert program.module()(torch.ones(16, 4))[0].tolist() == [0.125] * 4
    with pytest.raises(AssertionError, match=r"size\(\)\[1\] == 4"):
        program.module()(torch.ones(16, 5))
