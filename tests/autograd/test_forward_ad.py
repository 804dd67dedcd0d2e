"""torch.autograd.forward_ad, row by row of PyTorch's behaviour, and where jaxgrad goes further."""

import copy
import math

import jax
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters
from helpers.compiled import under_jit

import jaxgrad
from jaxgrad.autograd import forward_ad as fwAD


def dual(torch, values=(1.0, 2.0), tangents=(3.0, 4.0), **options):
    value = torch.tensor(values, **options)
    return torch.autograd.forward_ad.make_dual(value, torch.tensor(tangents, dtype=value.dtype))


def tangent(torch, tensor):
    """The tangent as it is now: PyTorch writes to tangents in place."""
    slope = torch.autograd.forward_ad.unpack_dual(tensor).tangent
    return None if slope is None else slope.clone()


def matrix(torch, dtype=None):
    value = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=dtype)
    return torch.autograd.forward_ad.make_dual(value, value.sin())


# ---- I01, I02: levels


@pytest.mark.row("I01")
@as_torch("""
    0
    tensor(-7.2164835929870605)
    None
    None
""")
def test_a_level_and_the_tangent_of_a_function(torch):
    with torch.autograd.forward_ad.dual_level() as level:
        x = dual(torch)
        slope = tangent(torch, (x * x).sin().sum())
    return level, slope, tangent(torch, x), tangent(torch, x * 2)


@pytest.mark.row("I01")
@as_torch("""
    [None, None, None]
    tensor([1.0, 4.0])
    None
""")
def test_a_level_begins_without_the_tangents_of_the_one_before(torch):
    dual_level = torch.autograd.forward_ad.dual_level
    with dual_level():
        x = dual(torch)
        y = x * x
    with dual_level():
        tangents = [tangent(torch, tensor) for tensor in (x, y, x * y)]
        again = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
        return tangents, tangent(torch, again * y), tangent(torch, x)


@pytest.mark.row("I01")
@as_torch("""
    tensor([6.0, 8.0])
    tensor([9.0, 12.0])
    'slope'
""")
def test_a_level_decorates_a_function(torch):
    @torch.autograd.forward_ad.dual_level()
    def slope(x):
        return tangent(torch, dual(torch) * x)

    return slope(torch.tensor(2.0)), slope(torch.tensor(3.0)), slope.__name__


@pytest.mark.row("I01")
def test_levels_may_be_entered_one_inside_the_other():
    with fwAD.dual_level() as outer, fwAD.dual_level() as inner:
        assert (outer, inner) == (0, 1)
        x = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0), level=outer)
        y = fwAD.make_dual(x, jaxgrad.tensor(1.0))
        slope = fwAD.unpack_dual(y**3).tangent
        assert slope.item() == 27
        assert fwAD.unpack_dual(slope, level=outer).tangent.item() == 18


@pytest.mark.row("I02")
@as_torch
def test_enter_and_exit_dual_level(torch):
    fwAD = torch.autograd.forward_ad
    level = fwAD.enter_dual_level()
    x = dual(torch)
    within = tangent(torch, x)
    wrong = [error(lambda: fwAD.exit_dual_level(level=3))]
    still = tangent(torch, x)
    gone = fwAD.exit_dual_level(level=level), tangent(torch, x)
    wrong += [error(fwAD.exit_dual_level), error(lambda: fwAD.exit_dual_level(level=-1))]
    again = fwAD.enter_dual_level(), fwAD.exit_dual_level()
    return level, within, wrong, still, gone, again


@pytest.mark.row("I02")
def test_levels_end_from_the_innermost_on():
    assert [fwAD.enter_dual_level() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"not the last one that was created.*is 2, not 1"):
        fwAD.exit_dual_level(level=1)
    for level in (2, 1, 0):
        fwAD.exit_dual_level(level=level)
    with pytest.raises(RuntimeError, match=r"Dual level must be a positive number\."):
        fwAD.exit_dual_level()


@pytest.mark.row("I01", "I02", "I03", "I04", "I09")
@as_torch("""
    ['UnpackedDualTensor', 'dual_level', 'enter_dual_level', 'exit_dual_level', 'make_dual',
     'unpack_dual']
    [[], [],
     [['level', None]],
     [['tensor', 'required'], ['tangent', 'required'], ['level', None]],
     [['tensor', 'required'], ['level', None]],
     [['mode', 'required']]]
""")
def test_names_and_signatures(torch):
    fwAD = torch.autograd.forward_ad
    names = sorted(fwAD.__all__)
    functions = [
        getattr(fwAD, name) for name in (*names, "_set_fwd_grad_enabled") if name[0] != "U"
    ]
    return names, [parameters(function) for function in functions]


# ---- I03: make_dual


@pytest.mark.row("I03")
@as_torch("""
    [True, True, True]
    tensor([2.0, 4.0])
    tensor([3.0, 4.0])
    None
    1
""")
def test_a_dual_is_a_view_with_a_tangent(torch):
    make_dual = torch.autograd.forward_ad.make_dual
    with torch.autograd.forward_ad.dual_level():
        x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        y = make_dual(x, t)
        shared = y._base is x, y.data_ptr() == x.data_ptr()
        shared = *shared, torch.autograd.forward_ad.unpack_dual(y).tangent is t
        x.mul_(2)
        return shared, y, tangent(torch, y), tangent(torch, x), y._version


@pytest.mark.row("I03")
@as_torch
def test_what_cannot_be_a_dual(torch):
    make_dual = torch.autograd.forward_ad.make_dual
    x, n = torch.tensor([1.0, 2.0]), torch.tensor([1, 2])
    errors = [error(make_dual, x, x)]
    with torch.autograd.forward_ad.dual_level():
        y = make_dual(x, x)
        pairs = [(n, x), (x, n), (x, torch.ones(3)), (x, torch.ones(2, 1)), (y, x)]
        errors += [error(make_dual, *pair) for pair in pairs]
        words = "Setting a forward grad that itself has a forward gradient at the same level"
        errors.append(error(make_dual, x, y, words=words))
        for level, words in ((1, "Invalid level given to _make_dual"), (-1, None)):
            errors.append(error(lambda at=level: make_dual(x, x, level=at), words=words))
    return errors


@pytest.mark.row("I03")
@as_torch("""
    [2.0]
    tensor([6.0], dtype=float64)
    tensor([6.0], dtype=float16)
    tensor([6.0-3.0j])
""")
def test_dtypes_of_duals(torch):
    make_dual = torch.autograd.forward_ad.make_dual
    with torch.autograd.forward_ad.dual_level():
        x = make_dual(torch.ones(1), torch.tensor([2.0], dtype=torch.float64))
        wide = make_dual(torch.ones(1, dtype=torch.float64), torch.tensor([2.0]))
        half = make_dual(torch.ones(1, dtype=torch.float16), torch.tensor([2.0]).half())
        z = make_dual(torch.tensor([1 + 2j]), torch.tensor([2 - 1j]))
        return tangent(torch, x).tolist(), *[tangent(torch, y * 3) for y in (wide, half, z)]


@pytest.mark.row("I03")
def test_a_tangent_has_the_dtype_of_its_tensor():
    """PyTorch does not convert it, so that sin() of float32 has a tangent of float64."""
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.ones(1), jaxgrad.ones(1).double())
        z = fwAD.make_dual(jaxgrad.tensor([1j]), jaxgrad.ones(1))
        dtypes = [fwAD.unpack_dual(y).tangent.dtype for y in (x, x.sin(), z)]
        assert dtypes == [jaxgrad.float32, jaxgrad.float32, jaxgrad.complex64]
        with pytest.raises(RuntimeError, match="cannot have a tangent of"):
            fwAD.make_dual(jaxgrad.ones(1), jaxgrad.tensor([1j]))


@pytest.mark.row("I03")
@pytest.mark.parametrize("arguments", [(1.0, jaxgrad.ones(1)), (jaxgrad.ones(1), 1.0)])
def test_make_dual_takes_tensors(arguments):
    with fwAD.dual_level(), pytest.raises(TypeError, match="must be Tensor, not float"):
        fwAD.make_dual(*arguments)


@pytest.mark.row("I03")
@as_torch("""
    [tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), [1, 3]]
    [tensor([[1.0, 2.0], [1.0, 2.0]]), [2, 1]]
    [tensor([[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]), [1, 3]]
    [tensor([[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]), [3, 1]]
""")
def test_strides_of_tangents(torch):
    make_dual = torch.autograd.forward_ad.make_dual
    with torch.autograd.forward_ad.dual_level():
        x = make_dual(torch.ones(2, 3).t(), torch.arange(6.0).reshape(3, 2))
        y = make_dual(torch.ones(2, 2), torch.tensor([1.0, 2.0]).expand(2, 2))
        tangents = [
            torch.autograd.forward_ad.unpack_dual(tensor)[1] for tensor in (x, y, x * 2, x.t())
        ]
        return [(slope, slope.stride()) for slope in tangents]


# ---- I04: unpack_dual


@pytest.mark.row("I04")
@as_torch
def test_unpack_dual_gives_primal_and_tangent(torch):
    fwAD = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0])
    outside = fwAD.unpack_dual(x)
    with fwAD.dual_level():
        y = dual(torch)
        primal, slope = fwAD.unpack_dual(y)
        inside = [primal, slope, tangent(torch, primal), primal._is_view(), fwAD.unpack_dual(x)]
        names = fwAD.unpack_dual(y)._fields, type(fwAD.unpack_dual(y)).__name__
        at = [fwAD.unpack_dual(y, level=level) for level in (0, -1)]
        wrong = [error(lambda: fwAD.unpack_dual(y, level=1), words="Invalid level given to")]
        derived = [tangent(torch, tensor) for tensor in (y > 1, y.argmax(), y.long(), x * 2)]
        wrong.append(error(fwAD.unpack_dual, 1.0, words="must be Tensor, not float"))
    after = fwAD.unpack_dual(y)
    return (
        outside,
        outside.primal is x,
        inside,
        names,
        [pair[1] for pair in at],
        derived,
        after,
        wrong,
    )


@pytest.mark.row("I04")
@as_torch("""
    tensor([2.0, 4.0])
    tensor([0.0, 40.0])
""")
def test_writing_to_what_was_unpacked(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch) * 1
        primal, slope = torch.autograd.forward_ad.unpack_dual(x)
        primal.mul_(2)
        slope.mul_(10)
        torch.autograd.forward_ad.unpack_dual(x[0:1]).tangent.zero_()
        return x, tangent(torch, x)


@pytest.mark.row("I04")
def test_unpacking_at_an_outer_level():
    """x = 2 + a + 3b + 5ab, a of the outer level and b of the inner one."""

    def number(value):
        return jaxgrad.tensor(value)

    with fwAD.dual_level() as a, fwAD.dual_level() as b:
        slope = fwAD.make_dual(number(3.0), number(5.0), level=a)
        x = fwAD.make_dual(fwAD.make_dual(number(2.0), number(1.0), level=a), slope, level=b)
        # the same, put together the other way round
        other = fwAD.make_dual(number(1.0), number(5.0), level=b)
        y = fwAD.make_dual(fwAD.make_dual(number(2.0), number(3.0), level=b), other, level=a)
        for tensor in (x, y):
            first = fwAD.unpack_dual(tensor * 1, level=a)
            second = fwAD.unpack_dual(tensor * 1, level=b)
            parts = [first.tangent, second.tangent]
            parts += [fwAD.unpack_dual(first.primal, level=b).tangent]
            parts += [fwAD.unpack_dual(second.primal, level=a).tangent]
            parts += [fwAD.unpack_dual(first.tangent, level=b).tangent]
            parts += [fwAD.unpack_dual(second.tangent, level=a).tangent]
            assert [part.item() for part in parts] == [1, 3, 3, 1, 5, 5]
        alone = fwAD.make_dual(number(2.0), other, level=a)
        assert fwAD.unpack_dual(fwAD.unpack_dual(alone, level=b).tangent, level=a).tangent == 5


# ---- I05: with reverse mode


@pytest.mark.row("I05")
@pytest.mark.slow
@as_torch("""
    [tensor(-7.337640925723912, dtype=float64),
     tensor([2.8937780731683387, -1.268088574321773], dtype=float64)]
    [tensor(-7.337640925723912, dtype=float64),
     tensor([2.8937780731683387, -1.268088574321773], dtype=float64)]
""")
def test_forward_over_reverse(torch):
    fwAD = torch.autograd.forward_ad
    x = leaf(torch, 0.5, 1.5, dtype=torch.float64)
    t = torch.tensor([1.0, -2.0], dtype=torch.float64)
    tangents = []
    for create_graph in (False, True):
        with fwAD.dual_level():
            y = fwAD.make_dual(x, t)
            loss = (y.exp() * y.sin()).sum()
            (gradient,) = torch.autograd.grad(loss, y, create_graph=create_graph)
            tangents.append((tangent(torch, loss).detach(), tangent(torch, gradient).detach()))
    return tangents


@pytest.mark.row("I05")
@as_torch("""
    [True, True, True]
    [tensor([2.8937780731683387, -1.2680885743217747], dtype=float64),
     tensor([2.2373281197977843, 4.787484522760848], dtype=float64)]
""")
def test_reverse_over_forward(torch):
    fwAD = torch.autograd.forward_ad
    x = leaf(torch, 0.5, 1.5, dtype=torch.float64)
    t = leaf(torch, 1.0, -2.0, dtype=torch.float64)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, t)
        slope = tangent(torch, (y.exp() * y.sin()).sum())
        kinds = y.requires_grad, slope.requires_grad, slope.grad_fn is not None
    return kinds, torch.autograd.grad(slope, (x, t))


@pytest.mark.row("I05")
@as_torch("""
    [False, False, True]
    tensor([6.0, 8.0])
""")
def test_only_the_tangent_requires_grad(torch):
    fwAD = torch.autograd.forward_ad
    t = leaf(torch, 1.0, -2.0)
    with fwAD.dual_level():
        y = fwAD.make_dual(torch.tensor([3.0, 4.0]), t)
        z = y * y
        slope = tangent(torch, z)
        kinds = y.requires_grad, z.requires_grad, slope.requires_grad
    slope.sum().backward()
    return kinds, t.grad


@pytest.mark.row("I05")
@as_torch("""
    tensor([3.0, 12.0])
    tensor([3.0, 12.0])
    tensor([6.0, 12.0])
    False
""")
def test_tangents_of_the_grad_of_leaves(torch):
    fwAD = torch.autograd.forward_ad
    x = leaf(torch, 1.0, 2.0)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, torch.ones(2))
        y.retain_grad()
        (y**3).sum().backward()
        return x.grad, y.grad, tangent(torch, y.grad), y.is_leaf


@pytest.mark.row("I05")
@pytest.mark.filterwarnings("ignore:Using backward")
@as_torch("""
    [1, 3]
    [1, 3]
""")
def test_the_strides_of_a_grad(torch):
    strides = []
    for create_graph in (False, True):
        x = torch.ones(2, 3).t().requires_grad_()
        with torch.autograd.forward_ad.dual_level():
            y = torch.autograd.forward_ad.make_dual(x, torch.ones(3, 2))
            (y * torch.ones(3, 2)).sum().backward(create_graph=create_graph)
        strides.append(x.grad.stride())
        x.grad = None
    return strides


@pytest.mark.row("I05")
def test_the_grad_of_a_leaf_keeps_its_tangent():
    """PyTorch drops it where the gradient is accumulated."""
    x = leaf(jaxgrad, 1.0, 2.0)
    with fwAD.dual_level():
        for _ in range(2):
            (fwAD.make_dual(x, jaxgrad.ones(2)) ** 3).sum().backward()
        assert x.grad.tolist() == [6, 24]
        assert fwAD.unpack_dual(x.grad).tangent.tolist() == [12, 24]
    assert fwAD.unpack_dual(x.grad).tangent is None


# ---- I06: operators that have no formula

OPERATORS = """
- name: undone(Tensor self, Tensor other) -> Tensor
  forward: self * other
  self: grad * other
  other: grad * self
  result: not_implemented("nobody has thought about it")

- name: one_way(Tensor self) -> Tensor
  forward: self * 2
  self: not_implemented("not yet")

- name: derived(Tensor self) -> Tensor
  forward: self * self
  self: grad * 2 * self
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "forward.yaml"
    path.write_text(OPERATORS)
    return jaxgrad.ops.load(path, namespace="forward_ad_rows")


@pytest.mark.row("I06")
@pytest.mark.parametrize(
    ("name", "count", "why"), [("undone", 2, "nobody has thought about it"), ("one_way", 1, "yet")]
)
def test_an_operator_without_a_formula(library, name, count, why):
    x = jaxgrad.tensor([1.0, 2.0])
    operator = getattr(library, name)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, x)
        words = f"Trying to use forward AD with {name} that does not support it because"
        with pytest.raises(NotImplementedError, match=f"{words} it has not been.*{why}"):
            operator(*[y] * count)
        assert operator(*[x] * count).shape == (2,)
        with fwAD._set_fwd_grad_enabled(False):
            assert operator(*[y] * count).shape == (2,)


@pytest.mark.row("I06")
def test_a_formula_is_derived_from_that_of_reverse_mode(library):
    x = leaf(jaxgrad, 1.0, 2.0)
    with fwAD.dual_level():
        slope = fwAD.unpack_dual(library.derived(fwAD.make_dual(x, jaxgrad.ones(2)))).tangent
        assert slope.tolist() == [2, 4]
        assert jaxgrad.autograd.grad(slope.sum(), x)[0].tolist() == [2, 2]


@pytest.mark.row("I06")
def test_the_gradient_of_an_operator_without_a_formula(library):
    x = leaf(jaxgrad, 1.0, 2.0)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, jaxgrad.ones(2))
        assert fwAD.unpack_dual(library.derived(y).sum()).tangent.item() == 6
        with fwAD._set_fwd_grad_enabled(False):
            z = library.undone(x, x)
        (gradient,) = jaxgrad.autograd.grad((z * y).sum(), x)
        assert gradient.tolist() == [3, 12]


# ---- I07: writing in place


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_tangents_of_in_place_operators(torch):
    answers = []
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch, (0.3, -0.7), dtype=torch.float64) * 1
        other = dual(torch, (0.9, 0.4), (-1.0, 2.0), dtype=torch.float64)
        for write in (
            lambda: x.mul_(2),
            lambda: x.add_(other, alpha=3),
            lambda: x.mul_(other),
            lambda: x.sin_(),
            lambda: x.clamp_(-0.5, 0.2),
            lambda: x.copy_(other),
            lambda: x.div_(other.exp()),
            lambda: x.masked_fill_(torch.tensor([True, False]), 3.0),
            lambda: x.neg_().exp_(),
            lambda: x.fill_(2.0),
            lambda: x.add_(other),
            lambda: x.zero_(),
            lambda: x.copy_(torch.ones(2)),
        ):
            same = write() is x
            answers.append((same, x, tangent(torch, x)))
    return [(same, tensor.tolist(), slope) for same, tensor, slope in answers]


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch("""
    tensor([[0.0, 0.0, 0.0], [-0.756802499294281, -0.9589242935180664, -0.279415488243103]])
    tensor([[0.0, 0.0, 0.0], [-0.756802499294281, -0.9589242935180664, -0.279415488243103]])
    tensor([[0.0, 0.0, 0.0], [-0.756802499294281, -0.9589242935180664, -0.279415488243103]])
""")
def test_what_random_numbers_overwrite_stands_still(torch):
    tangents = []
    with torch.autograd.forward_ad.dual_level():
        for name in ("normal_", "uniform_", "bernoulli_"):
            base = matrix(torch) * 1
            getattr(base[0], name)()
            tangents.append(tangent(torch, base))
    return tangents


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_a_tangent_enters_a_tensor_that_has_none(torch):
    with torch.autograd.forward_ad.dual_level():
        base = torch.zeros(2, 3)
        row, column, flat = base[0], base[:, 1], base.view(6)
        row[:2].copy_(dual(torch))
        tangents = [
            tangent(torch, tensor) for tensor in (base, row, column, flat, base[1], base.t())
        ]
        column.mul_(dual(torch, (2.0, 3.0), (1.0, 1.0)))
        tangents += [tangent(torch, tensor) for tensor in (base, row, column, flat)]
        base[1] = 5.0
        base[0, 1] = dual(torch)[1]
        tangents += [tangent(torch, tensor) for tensor in (base, row, column, flat)]
        return tangents, base


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch("""
    [tensor([[0.0, 0.0, 0.0], [-0.756802499294281, -0.9589242935180664, -0.279415488243103]]),
     tensor([0.0, 0.0, 0.0]),
     tensor([0.0, -0.9589242935180664]),
     tensor([[0.0, 0.0, 0.0], [-0.756802499294281, 0.0, -0.279415488243103]]),
     tensor([0.0, 0.0, 0.0]),
     tensor([0.0, 0.0]),
     tensor([[0.0, 0.0, 0.0], [-0.756802499294281, 0.0, 0.0]])]
    tensor([[5.0, 1.0, 5.0], [4.0, 1.0, 0.0]])
""")
def test_a_plain_value_enters_a_view_of_a_dual(torch):
    with torch.autograd.forward_ad.dual_level():
        base = matrix(torch) * 1
        row, column = base[0], base[:, 1]
        row.fill_(5.0)
        tangents = [tangent(torch, tensor) for tensor in (base, row, column)]
        column.copy_(torch.ones(2))
        tangents += [tangent(torch, tensor) for tensor in (base, row, column)]
        base[1, 2:].zero_()
        return [*tangents, tangent(torch, base)], base


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_writes_that_index(torch):
    index, mask = torch.tensor([0, 2]), torch.tensor([True, False, True])
    answers = []
    with torch.autograd.forward_ad.dual_level():
        for write in (
            lambda x, y: x.__setitem__(index, y),
            lambda x, y: x.__setitem__(mask, y),
            lambda x, y: x.__setitem__(mask, 7.0),
            lambda x, y: x.__setitem__(slice(1, None), y),
            lambda x, y: x.__setitem__(1, y[0]),
            lambda x, y: x.index_put_((index,), y, accumulate=True),
            lambda x, y: x.index_add_(0, index, y, alpha=2),
            lambda x, y: x.index_copy_(0, index, y),
            lambda x, y: x.index_fill_(0, index, 4.0),
            lambda x, y: x.scatter_(0, index, y),
            lambda x, y: x.scatter_add_(0, index, y),
            lambda x, y: x.masked_scatter_(mask, y),
            lambda x, y: x.put_(index, y),
        ):
            target, source = dual(torch, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)) * 1, dual(torch)
            plain = torch.zeros(3)
            write(target, source)
            write(plain, source)
            answers.append((target, tangent(torch, target), plain, tangent(torch, plain)))
            target = dual(torch, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)) * 1
            write(target, torch.tensor([8.0, 9.0]))
            answers.append((target, tangent(torch, target)))
    return answers


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_tangents_of_functions_that_move_dimensions_in_place(torch):
    with torch.autograd.forward_ad.dual_level():
        x = matrix(torch)
        row = x[0]
        x.t_()
        tangents = [tangent(torch, tensor) for tensor in (x, x[0], row)]
        x[0].mul_(dual(torch))
        tangents += [tangent(torch, tensor) for tensor in (x, x[0], row)]
        x.unsqueeze_(1).transpose_(0, 2).squeeze_()
        tangents += [tangent(torch, x), tangent(torch, x * x)]
        y = torch.zeros(2, 3)
        y.t_()
        y[:2, 0].add_(dual(torch))
        return tangents, tangent(torch, y), tangent(torch, y.t())


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_tangents_of_several_views(torch):
    with torch.autograd.forward_ad.dual_level():
        tangents = []
        for cut in (
            lambda x: x.unbind(0),
            lambda x: x.unbind(1),
            lambda x: x.chunk(2),
            lambda x: x.split(2, 1),
            lambda x: x.split([1, 2], 1),
        ):
            base = matrix(torch, torch.float64) * 1  # the sums cancel digits
            first, second, *_ = cut(base)
            both = first.sum() * second.sum()
            base.mul_(base.detach().clone())
            tangents.append([tangent(torch, tensor) for tensor in (first, second, both, base)])
            first.mul_(3)
            tangents.append([tangent(torch, tensor) for tensor in (first, second, base)])
        return tangents


@pytest.mark.row("I07")
@as_torch("""
    tensor([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0]])
    tensor([9.0, 12.0])
    tensor([[6.0, 16.0], [6.0, 16.0], [6.0, 16.0]])
    tensor([0.0, 16.0])
    tensor([[0.0, 16.0], [0.0, 16.0], [0.0, 16.0]])
    tensor([0.0, 0.0, 0.0])
""")
def test_tangents_of_writes_to_expanded_tensors(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch) * 1
        wide = x.unsqueeze(0).expand(3, 2)
        tangents = [tangent(torch, wide), tangent(torch, wide.sum(0))]
        x.mul_(dual(torch))
        tangents += [tangent(torch, wide)]
        part = x[0:1].expand(3)
        part.fill_(9.0)
        return *tangents, *[tangent(torch, tensor) for tensor in (x, wide, part)]


@pytest.mark.row("I07")
def test_filling_an_expanded_part_of_a_dual_itself():
    """PyTorch agrees; here the memory belongs to another tensor, which has no tangent."""
    with fwAD.dual_level():
        x = jaxgrad.tensor([1.0, 2.0])
        y = fwAD.make_dual(x, jaxgrad.tensor([3.0, 4.0]))
        y[:1].expand(3).fill_(5.0)
        assert fwAD.unpack_dual(y).tangent.tolist() == [0, 4]
        assert fwAD.unpack_dual(x).tangent is None and x.tolist() == [5, 2]


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch("""
    tensor([[0.8414709568023682, 0.14112000167369843], [-0.756802499294281, -0.279415488243103]])
    tensor([0.08466845750808716, -0.1382954865694046])
    tensor([[3.841470956802368, 0.9092974066734314, 12.28223991394043],
            [11.243197441101074, -0.9589242935180664, 23.44116973876953]])
    tensor([[3.841470956802368, 12.28223991394043], [11.243197441101074, 23.44116973876953]])
    tensor([[3.0, 4.0], [3.0, 4.0]])
""")
def test_tangents_of_as_strided(torch):
    with torch.autograd.forward_ad.dual_level():
        x = matrix(torch) * 1
        y = x.as_strided((2, 2), (3, 2), 0)
        tangents = [tangent(torch, y), tangent(torch, y.sum(0))]
        y.mul_(dual(torch))
        tangents += [tangent(torch, tensor) for tensor in (x, y)]
        z = dual(torch).as_strided((2, 2), (0, 1))
        return *tangents, tangent(torch, z)


@pytest.mark.row("I07")
@pytest.mark.slow
@as_torch
def test_tangents_of_complex_views(torch):
    values, tangents = (1 + 2j, 3 + 4j), (1j, 2 + 1j)
    with torch.autograd.forward_ad.dual_level():
        z = dual(torch, values, tangents) * 1
        pairs = torch.view_as_real(z)
        slopes = [tangent(torch, tensor) for tensor in (pairs, z.real, z.imag, z.conj(), z.abs())]
        pairs[0, 0] = 7.0
        z.imag.mul_(dual(torch))
        slopes += [tangent(torch, tensor) for tensor in (pairs, z, z.real, z.conj())]
        x = dual(torch, ((1.0, 2.0), (3.0, 4.0)), ((5.0, 6.0), (7.0, 8.0))) * 1
        whole = torch.view_as_complex(x)
        whole.mul_(1j)
        return slopes, tangent(torch, whole), tangent(torch, x)


@pytest.mark.row("I07")
def test_a_tangent_that_was_given_is_never_written_to():
    """PyTorch's in-place formulas write to it."""
    with fwAD.dual_level():
        t = jaxgrad.tensor([3.0, 4.0])
        x = fwAD.make_dual(jaxgrad.tensor([1.0, 2.0]), t)
        x.mul_(2)
        assert fwAD.unpack_dual(x).tangent.tolist() == [6, 8] and t.tolist() == [3, 4]


@pytest.mark.row("I07")
def test_tangents_of_out():
    """PyTorch refuses: `Trying to use forward AD with mul_out`."""
    with fwAD.dual_level():
        x = dual(jaxgrad)
        for out in (jaxgrad.empty(2), jaxgrad.empty(0), jaxgrad.zeros(2, 2)[:, 1], dual(jaxgrad)):
            assert jaxgrad.mul(x, 2, out=out) is out
            assert fwAD.unpack_dual(out).tangent.tolist() == [6, 8]
        jaxgrad.mul(jaxgrad.ones(2), 2, out=x)
        assert fwAD.unpack_dual(x * 1).tangent is None
        base = jaxgrad.zeros(2, 2)
        jaxgrad.mul(dual(jaxgrad), 2, out=base[:, 1])
        assert fwAD.unpack_dual(base).tangent.tolist() == [[0, 6], [0, 8]]
        jaxgrad.mul(jaxgrad.ones(2), 2, out=base[1])
        assert fwAD.unpack_dual(base).tangent.tolist() == [[0, 6], [0, 0]]


@pytest.mark.row("I07")
@as_torch
def test_writes_that_forward_mode_refuses(torch):
    errors = []
    with torch.autograd.forward_ad.dual_level():
        x, y = dual(torch) * 1, torch.ones(2)
        words = "Trying to use forward AD with set_ that does not support it"
        errors += [error(y.set_, x, words=words), error(x.set_, y, words=words)]
        errors += [error(x.resize_, 3), error(x.resize_, 2)]
        z = torch.autograd.forward_ad.make_dual(leaf(torch, 1.0, 2.0), torch.ones(2))
        words = "a view of a leaf Variable that requires grad is being used in an in-place"
        errors.append(error(z.mul_, 2, words=words))
    y.set_(x)
    x.resize_(3)
    return errors, y.tolist()


@pytest.mark.row("I07")
@as_torch("""
    [7.0, 8.0]
    tensor([42.0, 64.0])
    None
    tensor([1.0, 2.0])
    None
""")
def test_tangents_of_data(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch)
        x.data = torch.tensor([7.0, 8.0])
        y = torch.ones(2)
        y.data = dual(torch)
        return x.tolist(), tangent(torch, x * x), tangent(torch, x.data), y, tangent(torch, y)


@pytest.mark.row("I07")
def test_tangents_of_data_of_another_shape():
    """In PyTorch it would keep its old tangent of two elements."""
    with fwAD.dual_level():
        x = dual(jaxgrad) * 1
        for data in (jaxgrad.ones(3), jaxgrad.ones(2).double()):
            with pytest.raises(RuntimeError, match="it has a tangent of forward mode"):
                x.data = data


# ---- I08, C03, C09, D15, D16: who keeps tangents and who drops them


@pytest.mark.row("I08", "C03")
@as_torch("""
    [tensor([2.0, 4.0]), None, tensor([[2.0, 4.0], [0.0, 0.0]])]
    False
    None
""")
def test_no_grad_keeps_tangents(torch):
    """no_grad concerns reverse mode; `detach` and unpacked tensors stop tangents."""
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(leaf(torch, 1.0, 2.0), torch.ones(2))
        with torch.no_grad():
            y, z = x * x, (x * x).detach()
            base = torch.zeros(2, 2)
            base[0].copy_(y)
        tangents = [tangent(torch, tensor) for tensor in (y, z, base)]
        stopped = torch.autograd.forward_ad.unpack_dual(x).primal * 2
        return tangents, y.requires_grad, tangent(torch, stopped)


@pytest.mark.row("I08", "C09", "edge_23")
@as_torch("""
    [None, None, tensor([3.0, 4.0]), None, None, tensor([6.0, 16.0]), tensor([3.0])]
    [2.0, 4.0]
    tensor([3.0, 4.0])
""")
def test_inference_mode_drops_tangents(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch) * 1
        with torch.inference_mode():
            y = x * x
            tangents = [tangent(torch, tensor) for tensor in (x, y)]
            created = dual(torch)
            view = x[0:1]
            with torch.inference_mode(False):
                again = x * x
        tangents += [tangent(torch, tensor) for tensor in (x, y, created, again, view)]
        with torch.inference_mode():
            x.mul_(2)
        return tangents, x.tolist(), tangent(torch, x)


@pytest.mark.row("I08", "D15")
@as_torch("""
    [None, tensor([3.0, 8.0]), None, None]
    [2.0, 4.0]
    tensor([3.0, 4.0])
    None
""")
def test_detach_drops_tangents(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch) * 1
        y = x.detach()
        tangents = [tangent(torch, tensor) for tensor in (y, y * x, x.data, y[0])]
        y.mul_(2)
        return tangents, x.tolist(), tangent(torch, x), tangent(torch, y)


@pytest.mark.row("I08", "D16")
@as_torch
def test_detach_in_place_drops_tangents(torch):
    with torch.autograd.forward_ad.dual_level():
        x, tangents = dual(torch) * 1, []
        view = x[0:1]
        same = x.detach_() is x
        tangents += [tangent(torch, tensor) for tensor in (x, x * 2, view)]
        x.mul_(2)
        tangents += [tangent(torch, tensor) for tensor in (x, x[0:1])]
        x.mul_(dual(torch))
        tangents.append(tangent(torch, x))
        wrong = error(dual(torch).detach_)
        return same, tangents, x, wrong


@pytest.mark.row("I08")
@as_torch
def test_tangents_of_copies(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual(torch) * 1
        copies = [copy.copy(x), copy.deepcopy(x), torch.zeros_like(x), x.new_tensor(x.tolist())]
        copies += [x.clone(), torch.as_tensor(x), x.double(), x.to(torch.complex64), x.contiguous()]
        copies += [torch.asarray(x), x.cpu(), x.type_as(torch.ones(1, dtype=torch.float64))]
        return [tangent(torch, tensor) for tensor in copies]


# ---- I09: the switch


@pytest.mark.row("I09")
@as_torch
def test_set_fwd_grad_enabled(torch):
    fwAD = torch.autograd.forward_ad
    with fwAD.dual_level():
        x, tangents = dual(torch) * 1, []
        with fwAD._set_fwd_grad_enabled(False):
            y, created, view = x * x, dual(torch), x[0:1]
            tangents += [tangent(torch, tensor) for tensor in (x, y)]
            with fwAD._set_fwd_grad_enabled(True):
                tangents += [tangent(torch, tensor) for tensor in (x, y, x * x)]
        tangents += [tangent(torch, tensor) for tensor in (x, y, created, view)]
        with fwAD._set_fwd_grad_enabled(False):
            x.mul_(2)
        return tangents, x.tolist(), tangent(torch, x)


# ---- printing


@pytest.mark.row("I04")
@as_torch
def test_duals_print_their_tangents(torch):
    make_dual = torch.autograd.forward_ad.make_dual
    texts = []
    with torch.autograd.forward_ad.dual_level():
        number, wide = torch.tensor(1.0), torch.ones(3, 3, dtype=torch.float64)
        x = dual(torch)
        several = [make_dual(number, number), x, x * 2, make_dual(wide, wide / 2), x.detach()]
        several += [make_dual(torch.ones(12), torch.ones(12) / 2), make_dual(number, number / 3)]
        several += [make_dual(torch.ones(2), torch.ones(2, requires_grad=True)), x[0] / 3]
        several += [make_dual(torch.zeros(0), torch.zeros(0)), (x + 0j)[:1], x.sum()]
        texts = [repr(tensor) for tensor in several[:6] + several[7:]]
    return texts, repr(x), f"{x[0]} {x[0]:.2f}"


@pytest.mark.row("I04")
def test_duals_of_several_levels_print_all_tangents():
    with fwAD.dual_level(), fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.ones(1), jaxgrad.tensor([2.0]), level=0)
        y = fwAD.make_dual(x, jaxgrad.tensor([3.0]))
        assert repr(x) == "tensor([1.], tangent0=tensor([2.]))"
        assert repr(y) == "tensor([1.], tangent0=tensor([2.]), tangent1=tensor([3.]))"


# ---- nested derivatives: a level takes the variables of others for constants


def derivative(function, x):
    with fwAD.dual_level():
        slope = fwAD.unpack_dual(function(fwAD.make_dual(x, jaxgrad.ones_like(x)))).tangent
    return jaxgrad.zeros_like(x) if slope is None else slope


def by_reverse(function, x):
    return jaxgrad.func.grad(function)(x)


def ways(test):
    for name in ("outer", "inner"):
        test = pytest.mark.parametrize(name, [derivative, by_reverse])(test)
    return test


@ways
def test_the_inner_derivative_takes_the_outer_variable_for_a_constant(outer, inner):
    """d/dx x * (d/dy (x + y)) at 1 is 1, and 2 where the two are confused."""
    one = jaxgrad.tensor(1.0)
    slope = outer(lambda x: x * inner(lambda y: x + y, jaxgrad.tensor(1.0)), one)
    assert slope.item() == 1


@pytest.mark.slow
@ways
def test_a_closure_over_the_outer_variable(outer, inner):
    def nested(d, e):
        return lambda x: d(lambda y: x * y**2 * e(lambda z: (x * y * z).sin(), y), x)

    def theirs(x):
        return jax.grad(lambda y: x * y**2 * jax.grad(lambda z: jax.numpy.sin(x * y * z))(y))(x)

    x = jaxgrad.tensor(0.6, dtype=jaxgrad.float64)
    with jax.enable_x64(True):
        numpy.testing.assert_allclose(nested(outer, inner)(x).item(), theirs(0.6), rtol=1e-12)
        numpy.testing.assert_allclose(
            outer(nested(inner, outer), x).item(), jax.grad(theirs)(0.6), rtol=1e-12
        )


def test_values_of_one_level_are_constants_at_another():
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0))
        with fwAD.dual_level():
            assert fwAD.unpack_dual(x * x).tangent is None
            y = fwAD.make_dual(jaxgrad.tensor(3.0), jaxgrad.tensor(1.0))
            assert fwAD.unpack_dual(x * y).tangent.item() == 2
            assert fwAD.unpack_dual(fwAD.unpack_dual(x * y).tangent, level=0).tangent.item() == 1
        assert fwAD.unpack_dual(x * y).tangent.item() == 3
        assert math.isclose(
            fwAD.unpack_dual((x * y).sin()).tangent.item(), 3 * math.cos(6), rel_tol=1e-6
        )


@pytest.mark.row("edge_23")
@as_torch("""
    None
    tensor(15.0)
    None
""")
def test_inference_mode_no_grad_and_detach_of_a_dual(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.tensor(2.0), torch.tensor(5.0))
        with torch.inference_mode():
            dropped = forward.unpack_dual(dual * 3).tangent
        with torch.no_grad():
            kept = forward.unpack_dual(dual * 3).tangent
        return dropped, kept, forward.unpack_dual(dual.detach()).tangent


@pytest.mark.parametrize(
    "test", [test_inference_mode_no_grad_and_detach_of_a_dual], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()


def test_tangents_of_gather_with_a_sparse_gradient():
    x, index = jaxgrad.tensor([[1.0, 2.0]], requires_grad=True), jaxgrad.tensor([[1, 0, 1]])
    jaxgrad.gather(x, 1, index, sparse_grad=True).sum().backward()
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == [[1, 2]]
    with fwAD.dual_level():
        dual = fwAD.make_dual(x.detach(), jaxgrad.tensor([[3.0, 5.0]]))
        gathered = jaxgrad.gather(dual, 1, index, sparse_grad=True)
        assert fwAD.unpack_dual(gathered).tangent.tolist() == [[5, 3, 5]]
