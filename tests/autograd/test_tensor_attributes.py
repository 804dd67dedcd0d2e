"""Attributes and methods of tensors that gradients need, row by row of PyTorch's behaviour."""

import copy
import pickle

import jax
import numpy as np
import pytest
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.compiled import under_jit

import jaxgrad


def vector(torch, **options):
    return leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64, **options)


def state(tensor):
    kind = None if tensor.grad_fn is None else tensor.grad_fn.name()
    return tensor.requires_grad, tensor.is_leaf, kind, tensor.output_nr


# ---- whether a tensor requires grad


@pytest.mark.row("D01")
@as_torch("""
    [False, True, True, False, False]
    [RuntimeError('requires_grad must be a bool'), RuntimeError('requires_grad must be a bool')]
""")
def test_requires_grad_as_attribute(torch):
    x = torch.ones(2)
    flags = [x.requires_grad]
    x.requires_grad = True
    flags += [x.requires_grad, (x * 2).requires_grad]
    x.requires_grad = False
    flags += [x.requires_grad, (x * 2).requires_grad]
    wrong = [error(setattr, x, "requires_grad", flag, words="must be a bool") for flag in (1, None)]
    return flags, wrong


@pytest.mark.row("D02")
@as_torch("""
    [True, True]
    [True, False]
    [True, True]
    TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not int")
""")
def test_requires_grad_in_place(torch):
    x = torch.ones(2)
    same = x.requires_grad_() is x, x.requires_grad
    off = x.requires_grad_(False) is x, x.requires_grad
    x.requires_grad_(requires_grad=True)
    y = x * 2
    node = y.grad_fn
    again = y.requires_grad_() is y, y.grad_fn is node
    words = "argument 'requires_grad' (position 1) must be bool, not int"
    return same, off, again, error(x.requires_grad_, 1, words=words)


@pytest.mark.row("D03")
@as_torch
def test_a_computed_tensor_cannot_be_switched_off(torch):
    y = vector(torch) * 2
    errors = [error(setattr, y, "requires_grad", flag) for flag in (False, True)]
    errors.append(error(y.requires_grad_, False))
    with torch.no_grad():
        errors.append(error(y.requires_grad_, False))
    return errors, state(y)


@pytest.mark.row("D04")
@as_torch
def test_integers_and_bools(torch):
    words = "can require gradients"
    answers = []
    for dtype in (torch.int64, torch.uint8, torch.bool):
        x = torch.ones(2, dtype=dtype)
        answers += [
            error(setattr, x, "requires_grad", True, words=words),
            error(x.requires_grad_, words=words),
            error(lambda dtype=dtype: torch.ones(2, dtype=dtype, requires_grad=True), words=words),
            error(lambda x=x: torch.tensor(x.tolist(), requires_grad=True), words=words),
            x.requires_grad_(False).requires_grad,
        ]
    kinds = (torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128)
    return answers, [torch.ones(2, dtype=dtype).requires_grad_().requires_grad for dtype in kinds]


@pytest.mark.row("D05")
@as_torch("""
    False
    True
    tensor([5.0, 5.0])
""")
def test_what_was_recorded_before_is_not_tracked(torch):
    x = torch.ones(2)
    early = x * 3
    x.requires_grad_()
    late = x * 5
    (early + late).sum().backward()
    return early.requires_grad, late.requires_grad, x.grad


@pytest.mark.row("D06")
@as_torch("""
    [[True, True, None, 0],
     [False, True, None, 0],
     [True, False, 'MulBackward0', 0],
     [False, True, None, 0],
     [False, True, None, 0],
     [True, True, None, 0]]
    AttributeError("attribute 'is_leaf' of 'torch._C.TensorBase' objects is not writable")
""")
def test_which_tensors_are_leaves(torch):
    x = vector(torch)
    with torch.no_grad():
        computed = x * 2
    kinds = [x, torch.ones(2), x * 2, computed, x.detach(), (x * 2).detach().requires_grad_()]
    return [state(kind) for kind in kinds], error(setattr, x, "is_leaf", True, words="is_leaf")


# ---- .grad


@pytest.mark.row("D07")
@as_torch("""
    [None, None,
     tensor([2.0, 4.0, 6.0], dtype=float64),
     True, True,
     tensor([9.0, 11.0, 13.0], dtype=float64),
     True, None]
    tensor([0.0, 0.0])
""")
def test_grad_as_attribute(torch):
    x = vector(torch)
    answers = [x.grad, torch.ones(2).grad]
    (x * x).sum().backward()
    answers += [x.grad, x.grad.is_leaf]
    gradient = torch.full((3,), 7.0, dtype=torch.float64)
    x.grad = gradient
    answers.append(x.grad is gradient)
    (x * x).sum().backward()
    answers += [gradient, x.grad is gradient]
    x.grad = None
    answers.append(x.grad)
    plain = torch.ones(2)
    plain.grad = torch.zeros(2)
    return answers, plain.grad


@pytest.mark.row("D08")
@as_torch
def test_grad_of_a_computed_tensor_warns(torch):
    y = vector(torch) * 2
    before = warned(lambda: y.grad)
    y.sum().backward()
    after = warned(lambda: y.grad)
    z = vector(torch) * 2
    z.retain_grad()
    return before, after, warned(lambda: z.grad), warned(lambda: y.detach().grad)


@pytest.mark.row("D09")
@as_torch
def test_checks_of_the_setter_of_grad(torch):
    x, scalar, y = vector(torch), leaf(torch, 2.0), vector(torch) * 2
    dtype = "attempting to assign a gradient with dtype"
    errors = [
        error(setattr, x, "grad", 3),
        error(setattr, x, "grad", [1.0, 2.0, 3.0]),
        error(setattr, scalar, "grad", torch.ones(3)),
        error(setattr, x, "grad", torch.ones(1, 3, dtype=torch.float64)),
        error(setattr, x, "grad", torch.ones(3), words=dtype),
        error(setattr, y, "grad", torch.ones(3), words=dtype),
        error(setattr, x, "grad", x),
    ]
    x.grad = torch.ones(3, dtype=torch.float64)
    del x.grad
    empty = x.grad
    del x.grad
    y.grad = torch.ones(3, dtype=torch.float64)
    return errors, empty, x.grad, y.grad


@pytest.mark.row("D09")
def test_the_setter_of_grad_names_both_dtypes():
    x = vector(jaxgrad)
    words = "dtype 'torch.float32' to a tensor with grad_dtype 'torch.float64'"
    with pytest.raises(RuntimeError, match=words):
        x.grad = jaxgrad.ones(3)


@pytest.mark.row("D10")
@as_torch("""
    ['torch.float32', 'torch.int64', 'torch.float64',
     tensor([7.0, 13.0], dtype=float64),
     [tensor([2.0, 4.0], dtype=float64)]]
    tensor([7.0, 13.0], dtype=float64)
    True
    ['torch.float64']
""")
def test_grad_dtype_as_attribute(torch):
    x = leaf(torch, 1.0, 2.0)
    answers = [str(x.grad_dtype), str(torch.ones(2, dtype=torch.int64).grad_dtype)]
    x.grad_dtype = torch.float64
    (x * x).sum().backward()
    answers += [str(x.grad_dtype), x.grad, torch.autograd.grad((x * x).sum(), x)]
    g = x.grad
    (x * x).sum().backward()
    (x * x).sum().backward(inputs=[x])
    seen = []
    x.register_hook(lambda gradient: seen.append(str(gradient.dtype)))
    x.backward(torch.ones(2))
    return answers, x.grad, x.grad is g, seen


@pytest.mark.row("D10")
@as_torch("tensor([9.0625, 9.0625], dtype=bfloat16)")
def test_a_grad_dtype_of_lower_precision(torch):
    x = leaf(torch, 1.0, 2.0)
    x.grad_dtype = torch.bfloat16
    for _ in range(3):
        (x * 3.01).sum().backward()
    return x.grad


@pytest.mark.row("D10")
@as_torch("""
    None
    tensor([2.200000047683716, 4.0])
    tensor([3.200000047683716, 5.0], dtype=float64)
    True
    tensor([3.200000047683716, 5.0], dtype=float64)
    tensor([3.19921875, 5.0], dtype=float16)
    True
    tensor([3.19921875, 5.0], dtype=float16)
""")
def test_grad_dtype_none_takes_any(torch):
    x = leaf(torch, 1.1, 2.0)
    x.grad_dtype = None
    (x * x).sum().backward()
    answers = [x.grad_dtype, x.grad]
    for dtype in (torch.float64, torch.float16):
        x.grad = gradient = torch.ones(2, dtype=dtype)
        (x * x).sum().backward()
        answers += [x.grad, x.grad is gradient, x.grad * 1]
    return answers


@pytest.mark.row("D10")
@as_torch("""
    tensor([3.0, 12.0], dtype=float64, requires_grad=True)
    tensor([6.0, 12.0], dtype=float64)
""")
def test_grad_dtype_under_create_graph(torch):
    x = leaf(torch, 1.0, 2.0)
    x.grad_dtype = torch.float64
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first, second


@pytest.mark.row("D10")
@as_torch("""
    RuntimeError('grad_dtype can only be accessed on leaf tensors.')
    RuntimeError('grad_dtype can only be set on leaf tensors.')
    RuntimeError('grad_dtype must be a torch.dtype or None, but got str')
    RuntimeError(
     "Cannot set grad_dtype to 'Double' because there is already a gradient with dtype "
     "'float'. Please clear the gradient (.grad = None) before changing grad_dtype, or "
     "ensure the new grad_dtype matches the existing gradient's dtype.")
""")
def test_errors_of_grad_dtype(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    errors = [
        error(lambda: y.grad_dtype),
        error(setattr, y, "grad_dtype", torch.float64),
        error(setattr, x, "grad_dtype", "float64"),
    ]
    x.grad = torch.ones(2)
    words = "because there is already a gradient with dtype"
    errors.append(error(setattr, x, "grad_dtype", torch.float64, words=words))
    x.grad_dtype = torch.float32
    x.grad_dtype = None
    return errors


@pytest.mark.row("D10")
def test_a_grad_dtype_that_cannot_hold_the_gradient_is_refused_at_once():
    """PyTorch drops imaginary parts with a warning, and fails in the pass for integers."""
    z, x = jaxgrad.ones(2, dtype=jaxgrad.complex64), leaf(jaxgrad, 1.0, 2.0)
    for tensor, dtype in ((z, jaxgrad.float32), (x, jaxgrad.int64)):
        with pytest.raises(RuntimeError, match="cannot hold the gradient"):
            tensor.grad_dtype = dtype


@pytest.mark.row("D10")
def test_grad_dtype_under_jit():
    @jaxgrad.jit
    def gradient(x):
        x = x.detach().requires_grad_()
        x.grad_dtype = jaxgrad.float16
        (x * x).sum().backward()
        return x.grad

    result = gradient(jaxgrad.tensor([1.0, 2.0]))
    assert result.dtype == jaxgrad.float16 and result.tolist() == [2, 4]


# ---- the place in the graph


@pytest.mark.row("D11")
@as_torch("""
    [[True, True, None, 0],
     [True, False, 'MulBackward0', 0],
     [False, True, None, 0],
     [True, False, 'CloneBackward0', 0],
     [True, False, 'ViewBackward0', 0],
     [False, True, None, 0]]
    AttributeError("attribute 'grad_fn' of 'torch._C.TensorBase' objects is not writable")
""")
def test_grad_fn_of_leaves_and_results(torch):
    x = vector(torch)
    tensors = [x, x * 2, x.detach(), x.clone(), x.view(3, 1), torch.ones(2)]
    words = "grad_fn"
    return [state(tensor) for tensor in tensors], error(setattr, x, "grad_fn", None, words=words)


@pytest.mark.row("D12")
@as_torch("""
    [[0, 1, 2], [True, True, True]]
    [0, 0, 0]
    AttributeError("attribute 'output_nr' of 'torch._C.TensorBase' objects is not writable")
""")
def test_output_nr_of_several_outputs(torch):
    x = vector(torch)
    parts = x.unbind(0)
    edges = [part.output_nr for part in parts], [part.grad_fn is parts[0].grad_fn for part in parts]
    numbers = x.output_nr, (x * 2).output_nr, x.view(3, 1).max(0).values.output_nr
    return edges, numbers, error(setattr, x, "output_nr", 1, words="output_nr")


@pytest.mark.row("D13")
@as_torch("""
    [tensor([16.0, 32.0, 48.0], dtype=float64),
     tensor([4.0, 8.0, 12.0], dtype=float64),
     tensor([1.0, 1.0, 1.0], dtype=float64)]
    tensor([16.0, 32.0, 48.0], dtype=float64)
    tensor([8.0, 16.0, 24.0], dtype=float64)
    tensor([2.0, 2.0, 2.0], dtype=float64)
    RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
""")
def test_retain_grad_of_leaves_and_results(torch):
    x = vector(torch)
    y = x * 2
    z = y * y
    for tensor in (x, y, z):
        tensor.retain_grad()
        tensor.retain_grad()
    z.sum().backward(retain_graph=True)
    gradients = x.grad, y.grad, z.grad
    z.sum().backward()
    return gradients, x.grad, y.grad, z.grad, error(torch.ones(2).retain_grad)


@pytest.mark.row("D14")
@as_torch("""
    [False, False, False, False, True, False, False]
    AttributeError("attribute 'retains_grad' of 'torch._C.TensorBase' objects is not writable")
""")
def test_retains_grad_tells_of_retain_grad(torch):
    x = vector(torch)
    y = x * 2
    flags = [x.retains_grad, y.retains_grad, torch.ones(2).retains_grad]
    x.retain_grad()
    y.retain_grad()
    flags += [x.retains_grad, y.retains_grad, (y * 1).retains_grad, y.detach().retains_grad]
    return flags, error(setattr, y, "retains_grad", True, words="retains_grad")


# ---- reading


@pytest.mark.row("D21")
@as_torch("""
    [2.5, True, 2, 2.5+0.0j, [1.0, 2.0, 3.0], '2.50', True]
    [RuntimeError('a Tensor with 3 elements cannot be converted to Scalar'),
     RuntimeError('Boolean value of Tensor with more than one value is ambiguous'),
     ValueError('only one element tensors can be converted to Python scalars'),
     TypeError('only integer tensors of a single element can be converted to an index')]
""")
def test_reading_numbers_of_what_requires_grad(torch):
    x = leaf(torch, 2.5, dtype=torch.float64)
    y = vector(torch)
    read = x.item(), bool(x), int(x), complex(x), y.tolist(), f"{x:.2f}", (x > 2).item()
    refused = (
        error(y.item),
        error(bool, y, words="Boolean value of Tensor with more than one value is ambiguous"),
        error(
            float, y.detach(), words="only one element tensors can be converted to Python scalars"
        ),
        error(range, x),
    )
    return read, refused


@pytest.mark.row("D21")
@as_torch("""
    [['UserWarning', True]]
    2.5
    warned([], 2.5)
""")
def test_a_float_of_what_requires_grad_warns(torch):
    words = (
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior"
    )
    report = warned(lambda: float(leaf(torch, 2.5)))
    told = [(warning["error"], words in warning["says"]) for warning in report["warnings"]]
    return told, report["result"], warned(lambda: float(torch.tensor(2.5)))


@pytest.mark.row("D21")
def test_reading_inside_grad_leaves_the_gradient_alone():
    def function(x):
        readings = x.item(), repr(x), x.tolist(), bool(x)
        return x * x * (1 if readings[0] > 0 else -1)

    x = jaxgrad.tensor(3.0)
    assert jaxgrad.func.grad(function)(x).item() == 6


@pytest.mark.row("D22")
@as_torch
def test_asarray_of_what_requires_grad(torch):
    x = vector(torch)
    refused = error(np.asarray, x), error(x.numpy), error((x * 2).numpy)
    with torch.no_grad():
        allowed = x.numpy().tolist(), np.asarray(x).tolist()
    return refused, allowed, x.numpy(force=True).tolist(), x.detach().numpy().tolist()


@pytest.mark.row("D23")
@as_torch
def test_deepcopy_of_leaves_alone(torch):
    x = vector(torch)
    (x * x).sum().backward()
    duplicate = copy.deepcopy(x)
    (duplicate * 3).sum().backward()
    twice = copy.deepcopy([x, x])
    words = (
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol"
    )
    return (
        (duplicate, duplicate.grad, duplicate.is_leaf, x.grad, duplicate.grad is x.grad),
        (twice[0] is twice[1], twice[0] is x, twice[0].grad),
        error(copy.deepcopy, x * 2, words=words),
        copy.deepcopy((x * 2).detach()),
        (copy.copy(x).grad, copy.copy(x), copy.copy(x).is_leaf),
    )


@pytest.mark.row("D23")
def test_deepcopy_keeps_the_dtype_of_the_gradient():
    """PyTorch's copy forgets grad_dtype and would not accept its own `.grad`."""
    x = leaf(jaxgrad, 1.0, 2.0)
    x.grad_dtype = jaxgrad.float64
    (x * x).sum().backward()
    duplicate = copy.deepcopy(x)
    assert duplicate.grad_dtype is jaxgrad.float64 and duplicate.grad.dtype is jaxgrad.float64


@pytest.mark.row("D24")
@as_torch
def test_pickling_keeps_values_and_flags(torch):
    x = vector(torch)
    (x * x).sum().backward()
    kept = [x, x * 2, x.detach().t(), torch.arange(6.0)[::2], torch.arange(3).expand(2, 3)]
    kept += [torch.tensor([1 + 2j]).conj(), torch.zeros(0, 3), torch.tensor([1.5]).bfloat16()]
    answers = []
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copies = [pickle.loads(pickle.dumps(tensor, protocol)) for tensor in kept]
        twice = pickle.loads(pickle.dumps([x, x], protocol))
        answers.append(
            (copies, [tensor.stride() for tensor in copies], copies[0].grad, copies[1].is_leaf)
        )
        answers.append((twice[0] is twice[1], x[0].item()))
    return answers


@pytest.mark.row("D24")
@pytest.mark.parametrize("protocol", [0, 1])
def test_the_first_protocols_pickle_tensors_too(protocol):
    tensor = pickle.loads(pickle.dumps(vector(jaxgrad), protocol))
    assert tensor.tolist() == vector(jaxgrad).tolist() and tensor.requires_grad


@pytest.mark.row("D25")
@as_torch
def test_repr_of_tensors_with_gradients(torch):
    x = leaf(torch, 2.0)
    y = leaf(torch, 1.0, 2.0)
    tensors = [
        x,
        x * x,
        x + 1,
        y,
        y.sum(),
        y.view(2, 1),
        y.detach(),
        y[0],
        y.exp(),
        torch.tensor([1, 2]),
        y.clone().requires_grad_(),
        torch.zeros(0, requires_grad=True),
    ]
    return [repr(tensor) for tensor in tensors], [str(tensor) for tensor in tensors]


@pytest.mark.row("D26")
@as_torch("""
    [tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 4.0], requires_grad=True)]
    [['UnbindBackward0', 0], ['UnbindBackward0', 1]]
    tensor([[3.0, 4.0], [1.0, 2.0]])
    2
    TypeError('iteration over a 0-d tensor')
    [tensor(0), tensor(1), tensor(2)]
""")
def test_iteration_gives_rows_with_a_history(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = list(x)
    kinds = [(row.grad_fn.name(), row.output_nr) for row in rows]
    first, second = x
    (first * second).sum().backward()
    return rows, kinds, x.grad, len(x), error(iter, torch.tensor(1.0)), [*torch.arange(3)]


# ---- what is left of older versions, and names of the module


@pytest.mark.row("D30")
@as_torch("""
    [warned([UserWarning('volatile was removed (Variable.volatile is always False)')], False),
     warned([UserWarning('volatile was removed (Variable.volatile is always False)')], False)]
    warned([UserWarning(
             'volatile was removed and now has no effect. Use `with torch.no_grad():` instead.')],
           None)
    True
""")
def test_volatile_warns(torch):
    x = vector(torch)
    warnings = [warned(lambda: x.volatile), warned(lambda: (x * 2).volatile)]
    return warnings, warned(setattr, x, "volatile", True), x.requires_grad


@pytest.mark.row("D30")
@as_torch
def test_reinforce_raises(torch):
    words = "reinforce() was removed"
    x = vector(torch)
    return error(x.reinforce, 1.0, words=words), error((x * 2).reinforce, 1.0, words=words)


@pytest.mark.row("D31")
@as_torch("""
    [True, True, True, True, True, True, True, True, True, True, True]
    [True, False]
""")
def test_names_of_the_module(torch):
    names = (
        *("is_grad_enabled", "set_grad_enabled", "no_grad", "enable_grad", "inference_mode"),
        *("is_inference_mode_enabled", "is_inference", "gradient", "is_anomaly_enabled"),
        *("is_anomaly_check_nan_enabled", "set_anomaly_enabled"),
    )
    with torch.inference_mode():
        tensor = torch.ones(2)
    kinds = torch.is_inference(tensor), torch.is_inference(torch.ones(2))
    return [hasattr(torch, name) for name in names], kinds


def fourth_powers(torch):
    return torch.tensor([[1.0, 16.0, 81.0], [2.0, 7.0, 5.0], [3.0, 3.0, 0.5]], dtype=torch.float64)


@pytest.mark.row("D31")
@pytest.mark.slow
@as_torch
def test_gradient_of_samples(torch):
    t, m = torch.tensor([1.0, 4.0, 9.0, 16.0, 25.0]), fourth_powers(torch)
    places = torch.tensor([0.0, 1.0, 3.0, 4.0, 6.0])
    rows, columns = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.0, 2.0, 3.0])
    return (
        [torch.gradient(t), torch.gradient(t, spacing=2.0), torch.gradient(t, spacing=[4])],
        [torch.gradient(m), torch.gradient(m, dim=-1), torch.gradient(m, dim=[1, 0], spacing=2)],
        [torch.gradient(m, spacing=(1, 2.0)), torch.gradient(m, edge_order=2)],
        [torch.gradient(t, spacing=[places], edge_order=order) for order in (1, 2)],
        [torch.gradient(m.float(), spacing=(rows, columns), edge_order=2)],
        [torch.gradient(t.long()), torch.gradient(torch.tensor([1 + 1j, 4.0, 9.0]))],
        [torch.gradient(torch.tensor(1.0)), torch.gradient(t, dim=()), torch.gradient(t[:2])],
        [torch.gradient(m, spacing=torch.tensor(2.0)), torch.gradient(m, spacing=1j, dim=0)],
    )


@pytest.mark.row("D31")
@pytest.mark.slow
@as_torch("""
    tensor([[-295.1111111111111, -275.1111111111111, 1669.5555555555557],
            [-43.666666666666664, -6.666666666666657, -783.1666666666666],
            [17.77777777777778, -42.22222222222222, -241.38888888888889]],
           dtype=float64)
    tensor([18713.583333333332, -19514.25, 800.6666666666667], dtype=float64)
""")
def test_gradient_is_differentiable(torch):
    x = fourth_powers(torch).requires_grad_()
    places = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    even, uneven = torch.gradient(x, spacing=0.5), torch.gradient(x, spacing=[places], dim=0)
    total = sum((part * part).sum() for part in (*even, *uneven))
    return torch.autograd.grad(total, [x, places])


@pytest.mark.row("D31")
@as_torch
def test_gradient_errors(torch):
    t, m, g = torch.arange(5.0), fourth_powers(torch), torch.gradient
    short = "torch.gradient expected each dimension size to be at least edge_order+1"
    order = "torch.gradient only supports edge_order=1 and edge_order=2"
    unfit = "torch.gradient expected spacing to be unspecified, a scalar"
    return (
        error(lambda: g(t, edge_order=3), words=order),
        error(lambda: g(t[:1]), words=short),
        error(lambda: g(t[:2], edge_order=2), words=short),
        error(lambda: g(m, dim=(0, 0))),
        error(lambda: g(m, dim=3)),
        error(lambda: g(m, spacing=(1.0, 2.0, 3.0)), words=unfit),
        error(lambda: g(m, spacing=(1.0,), dim=(0, 1)), words=unfit),
        error(lambda: g(t, spacing=[m]), words="each element of spacing to have one dimension"),
        error(lambda: g(t, spacing=t), words="gradient()"),
        error(lambda: g(t, spacing="wide"), words="gradient()"),
        error(lambda: g(t, dim="all"), words="gradient()"),
        error(lambda: g([1.0, 2.0])),
        error(lambda: g(t > 1), words="Subtraction, the `-` operator, with two bool tensors"),
    )


@pytest.mark.row("D31")
def test_gradient_of_unequal_steps_equals_numpys():
    """PyTorch accepts more or fewer coordinates than points and gives as many results."""
    values = np.random.default_rng(0).normal(size=(4, 5))
    places = [np.array([0.0, 0.5, 2.0, 2.25]), np.array([1.0, 2.0, 4.0, 4.5, 7.0])]
    for order in (1, 2):
        ours = jaxgrad.gradient(
            jaxgrad.tensor(values), spacing=list(map(jaxgrad.tensor, places)), edge_order=order
        )
        for mine, theirs in zip(ours, np.gradient(values, *places, edge_order=order), strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-13, atol=1e-13)
    with pytest.raises(RuntimeError, match="4 coordinates for dimension 0, which has size 5"):
        jaxgrad.gradient(jaxgrad.ones(5), spacing=[jaxgrad.arange(4.0)])


@pytest.mark.row("D31")
@pytest.mark.slow
def test_gradient_under_jit():
    x = jaxgrad.tensor([1.0, 4.0, 9.0])
    compiled = jaxgrad.jit(lambda x: jaxgrad.gradient(x, edge_order=2))(x)
    assert [t.tolist() for t in compiled] == [[2, 4, 6]]
    with jax.enable_x64(True):
        assert (
            jax.grad(lambda a: jaxgrad.gradient(jaxgrad.tensor(a))[0].sum()._array)(x._array).sum()
            == 0
        )


@as_torch("""
    RuntimeError('Deleting tensor data is not allowed. Delete tensor instead!')
    TypeError('Variable data has to be a tensor, but got int')
    tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True)
""")
def test_data_cannot_be_deleted(torch):
    x = vector(torch)

    def delete():
        del x.data

    return error(delete), error(lambda: setattr(x, "data", 3)), x


@as_torch("""
    tensor([1.0, 1.0, 1.0], dtype=float64)
    None
""")
def test_the_private_name_of_grad(torch):
    x = vector(torch)
    x._grad = torch.ones_like(x)
    gradient = x.grad.clone()
    del x._grad
    return gradient, x.grad


@as_torch
def test_real_and_imaginary_parts_can_be_assigned(torch):
    told = []
    for value in (3, 2.5, torch.tensor(4.0), torch.tensor([1.0, 2.0]), torch.tensor([1, 2])):
        for part in ("real", "imag"):
            z = torch.full((2,), 1 + 1j)
            setattr(z, part, value)
            told.append(z)
    for value in (torch.ones(3), "a", None):
        z = torch.full((2,), 1 + 1j)
        told.append(error(lambda z=z, v=value: setattr(z, "real", v), words="")["error"])
    x = torch.ones(2)
    x.real = torch.zeros(2)
    return told, x, error(setattr, x, "imag", 3)


@pytest.mark.slow
@as_torch("""
    tensor([2.0+4.0j, 3.0+6.0j], dtype=complex128, requires_grad=True)
    tensor([20.0, 30.000000000000004], dtype=float64)
    tensor([0.0+0.0j, 0.0+0.0j], dtype=complex128)
    RuntimeError(
     'a view of a leaf Variable that requires grad is being used in an in-place '
     'operation.')
""")
def test_gradients_of_assigned_parts(torch):
    r = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    w = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    z = w * 1
    z.real = r
    z.imag = r * 2
    (z.abs() ** 2).sum().backward()
    return z, r.grad, w.grad, error(lambda: setattr(w, "real", 3))


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


def word(report):
    """The type of a warning or error and the words that both libraries share."""
    return [(warning["error"], warning["says"].split(". ")[0]) for warning in report["warnings"]]


@pytest.mark.row("edge_18")
@as_torch("""
    False
    tensor([1.0, 1.0], dtype=float64)
    tensor([6.0, 6.0], dtype=float64)
    RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
""")
def test_retain_grad_of_tensors_written_in_place(torch):
    x = numbers(torch, 1.0, 2.0)
    x.retain_grad()
    b = x * 2
    b.retain_grad()
    b.mul_(3)
    b.sum().backward()
    return x.retains_grad, b.grad, x.grad, error(torch.ones(1).retain_grad)


@pytest.mark.row("edge_19")
@as_torch("""
    [['UserWarning', 'The .grad attribute of a Tensor that is not a leaf Tensor is being accessed']]
    None
""")
def test_grad_of_a_non_leaf(torch):
    y = leaf(torch, 2.0) * 3
    y.backward()
    told = warned(lambda: y.grad)
    return word(told), told["result"]


@pytest.mark.row("edge_20")
@as_torch
def test_errors_of_requires_grad(torch):
    x, i = numbers(torch, 1.0, 2.0), torch.tensor([1, 2])
    y, out = x * 2, torch.zeros(2, dtype=torch.float64)
    differentiable = "can require gradients"
    resized = "cannot resize variables that require grad"
    copied = "Only Tensors created explicitly by the user (graph leaves) support the deepcopy"
    return (
        error(i.requires_grad_, words=differentiable),
        error((i > 1).requires_grad_, words=differentiable),
        error(y.requires_grad_, False),
        error(y.numpy),
        error(copy.deepcopy, y, words=copied),
        error(lambda: torch.add(x, x, out=out), words="don't support automatic differentiation"),
        error(x.resize_, 3, words=resized),
        error(lambda: torch.ones(2, dtype=torch.bool, requires_grad=True), words=differentiable),
    )


@pytest.mark.parametrize(
    "test",
    [
        test_retain_grad_of_tensors_written_in_place,
        test_grad_of_a_non_leaf,
        test_errors_of_requires_grad,
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
