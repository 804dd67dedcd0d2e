"""autograd.backward and Tensor.backward, row by row of PyTorch's behaviour."""

import collections
import functools
import inspect
import threading
import types
from collections import OrderedDict

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned
from helpers.compiled import under_jit

import jaxgrad


@pytest.mark.row("A01")
@as_torch
def test_backward_adds_the_gradient_of_each_leaf(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    result = torch.autograd.backward(x * y, torch.tensor([1.0, 10.0]))
    return result, x.grad, y.grad, parameters(torch.autograd.backward)


@pytest.mark.row("A01")
@as_torch("tensor(26.0)")
def test_the_sum_of_several(torch):
    x = leaf(torch, 3.0)
    torch.autograd.backward([x * x, 2 * x], [torch.tensor(1.0), torch.tensor(10.0)])
    return x.grad


@pytest.mark.row("A02")
@as_torch("""
    None
    tensor([5.0, 5.0])
""")
def test_tensor_backward(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    y.backward(torch.ones(2), True)
    y.backward(gradient=torch.tensor([1.0, 0.0]), retain_graph=None, create_graph=False)
    y = x.sum()
    return y.backward(inputs=[x]), x.grad


@pytest.mark.row("A02")
def test_signature_of_the_method():
    names = ["self", "gradient", "retain_graph", "create_graph", "inputs"]
    assert list(inspect.signature(jaxgrad.Tensor.backward).parameters) == names
    assert jaxgrad.Tensor.backward.__name__ == "backward"


@pytest.mark.row("A03")
@as_torch("""
    tensor(1.0)
    tensor(1.0)
    tensor(1.0)
    tensor(2.0)
    tensor(1.0)
    None
""")
def test_forms_of_tensors(torch):
    edge = torch.autograd.graph.get_gradient_edge
    gradients = []
    for form in (
        lambda y: y,
        lambda y: edge(y),
        lambda y: [y],
        lambda y: (y, edge(y)),
        lambda y: iter([y]),
        lambda y: [],
    ):
        x = leaf(torch, 3.0)
        torch.autograd.backward(form(x + 1))
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("A03")
def test_backward_of_what_is_no_tensor():
    for wrong in (None, 3, [3], [None]):
        with pytest.raises(TypeError, match=r"(?i)expected .*tensor"):
            jaxgrad.autograd.backward(wrong)


@pytest.mark.row("A04")
@as_torch("tensor([37.0, 37.0])")
def test_forms_of_grad_tensors(torch):
    x = leaf(torch, 1.0, 2.0)
    constant, two = torch.tensor([5.0, 5.0]), torch.tensor([2.0, 2.0])
    torch.autograd.backward(x * constant, two)
    torch.autograd.backward((x * constant).sum())
    torch.autograd.backward([x.sum(), x * constant], [None, two])
    torch.autograd.backward((x * constant, x.sum()), iter([two, None]))
    return x.grad


@pytest.mark.row("A05")
@as_torch("""
    RuntimeError('got 2 tensors and 1 gradients')
    RuntimeError('got 1 tensors and 0 gradients')
""")
def test_grad_tensors_of_wrong_length(torch):
    x = leaf(torch, 1.0, 2.0)
    ones = torch.ones(2)
    return (
        error(torch.autograd.backward, [x * x, x * x], [ones]),
        error(torch.autograd.backward, [x * x], []),
    )


@pytest.mark.row("A05")
def test_too_many_grad_tensors():
    """PyTorch ignores the rest."""
    x, one = leaf(jaxgrad, 2.0), jaxgrad.tensor(1.0)
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        jaxgrad.autograd.backward(x * x, [one, one])


@pytest.mark.row("A06")
@as_torch("""
    tensor(6.0)
    tensor([6.0])
    tensor([[6.0]])
""")
def test_ones_for_an_output_of_one_element(torch):
    gradients = []
    for shape in ((), (1,), (1, 1)):
        x = torch.full(shape, 3.0, requires_grad=True)
        (x * x).backward()
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("A07")
@as_torch("""
    RuntimeError('grad can be implicitly created only for scalar outputs')
    RuntimeError('grad can be implicitly created only for scalar outputs')
    RuntimeError('grad can be implicitly created only for scalar outputs')
""")
def test_an_output_of_several_elements_needs_a_gradient(torch):
    shapes = (3,), (0,), (2, 0)
    return [error((torch.ones(shape, requires_grad=True) * 2).backward) for shape in shapes]


@pytest.mark.row("A08")
@as_torch("""
    RuntimeError(
     'grad can be implicitly created only for real scalar outputs but got '
     'torch.complex64')
    tensor(2.0-4.0j)
""")
def test_a_complex_output_needs_a_gradient(torch):
    x = leaf(torch, 1.0 + 2.0j)
    (x * x).backward(torch.tensor(1.0 + 0.0j))
    return error((x * x).backward), x.grad


@pytest.mark.row("A09")
@as_torch
def test_shape_of_the_gradient(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    backward = torch.autograd.backward
    return (
        error(backward, x * x, torch.ones(2)),
        error(backward, x.sum(), torch.ones(1)),
        error(backward, torch.autograd.graph.get_gradient_edge(x * x), torch.ones(4)),
    )


@pytest.mark.row("A09")
def test_the_position_is_named():
    """PyTorch fails during the search."""
    x = leaf(jaxgrad, 1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match=r"grad_output\[1\] has a shape of torch.Size\(\[2\]\)"):
        jaxgrad.autograd.backward([x.sum(), x * x], [None, jaxgrad.ones(2)])


@pytest.mark.row("A10")
@as_torch
def test_dtype_of_the_gradient(torch):
    x, z = leaf(torch, 1.0, 2.0), leaf(torch, 1.0 + 1.0j)
    (x * 3).backward(torch.ones(2, dtype=torch.float64))
    (x * 3).backward(torch.ones(2, dtype=torch.int64))
    (x * 3).backward(torch.ones(2, dtype=torch.bool))
    (z * 3).backward(torch.tensor(1.0j, dtype=torch.complex128))
    return (
        x.grad,
        z.grad,
        error((x * 3).backward, torch.ones(2, dtype=torch.complex64)),
        error((z * 3).backward, torch.tensor(1.0)),
    )


@pytest.mark.row("A11")
@as_torch("""
    TypeError('gradients can be either Tensors or None, but got float')
    TypeError('gradients can be either Tensors or None, but got list')
    TypeError('gradients can be either Tensors or None, but got str')
""")
def test_gradient_of_another_type(torch):
    x = leaf(torch, 1.0, 2.0)
    return [error(torch.autograd.backward, [x * x], [wrong]) for wrong in (1.0, [1.0], "ones")]


@pytest.mark.row("A11")
def test_a_number_as_gradient():
    """PyTorch tries to iterate over it."""
    x = leaf(jaxgrad, 2.0)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        (x * x).backward(1.0)


@pytest.mark.row("A12")
@as_torch("""
    RuntimeError('element 1 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    None
""")
def test_an_output_that_needs_no_grad(torch):
    x, constant = leaf(torch, 3.0), torch.tensor(1.0)
    return (
        error(torch.autograd.backward, [x * x, constant]),
        error(torch.autograd.backward, [constant, x * x], [None, None]),
        error(torch.autograd.backward, torch.ones(3), torch.ones(3)),
        x.grad,
    )


@pytest.mark.row("A13")
@as_torch("""
    [tensor([9.0, 12.0]), tensor([103.0, 206.0])]
    tensor([2.0, 4.0])
""")
def test_gradients_accumulate(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y.grad = torch.tensor([100.0, 200.0])
    for _ in range(3):
        (x * y).sum().backward()
    gradients = [x.grad.clone(), y.grad.clone()]
    x.grad = None
    (x * x).sum().backward()
    return gradients, x.grad


@pytest.mark.row("A14")
@as_torch("""
    {'in place': [True, tensor(8.0)],
     'recorded': [False, tensor(4.0, requires_grad=True), True, tensor(12.0, requires_grad=True)],
     'preset': [True, tensor(5.0)]}
""")
def test_identity_of_grad(torch):
    x = leaf(torch, 2.0)
    (x * x).backward()
    first = x.grad
    (x * x).backward()
    same = x.grad is first
    recorded = leaf(torch, 2.0)
    warned((recorded * recorded).backward, None, None, True)
    before = recorded.grad
    warned((recorded * recorded).backward, None, None, True)
    again = recorded.grad
    (recorded * recorded).backward()
    gradient = torch.ones(())
    preset = leaf(torch, 2.0)
    preset.grad = gradient
    (preset * preset).backward()
    return {
        "in place": (same, first),
        "recorded": (again is before, before, recorded.grad is again, again),
        "preset": (preset.grad is gradient, gradient),
    }


@pytest.mark.row("A14")
@as_torch("""
    [False, tensor(3.0, requires_grad=True), tensor(7.0)]
    [False, tensor(3.0, requires_grad=True), tensor(7.0, requires_grad=True)]
""")
def test_a_gradient_that_was_passed_in_stays_as_it_was(torch):
    answers = []
    for create_graph in (False, True):
        x, gradient = leaf(torch, 2.0), leaf(torch, 3.0)
        warned(x.backward, gradient, None, create_graph)
        (x * x).backward()
        answers.append((x.grad is gradient, gradient, x.grad))
    return answers


@pytest.mark.row("A15")
@as_torch
def test_default_of_retain_graph(torch):
    errors = []
    for retain_graph, create_graph in (
        (None, False),
        (False, False),
        (True, False),
        (None, True),
        (False, True),
        (True, True),
    ):
        x = leaf(torch, 2.0)
        y = x.exp()
        warned(y.backward, None, retain_graph, create_graph)
        errors.append(error(y.backward))
    return errors


@pytest.mark.row("A16")
@as_torch
def test_a_second_pass_over_a_freed_graph(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.backward()
    return error(y.backward), error(torch.autograd.grad, y, x), x.grad


@pytest.mark.row("A17")
@as_torch("""
    tensor([2.0, 2.0])
    tensor(2.0, requires_grad=True)
""")
def test_what_saved_nothing_runs_again(torch):
    x = leaf(torch, 2.0, 3.0)
    y = (x + 1).sum() - x.sum() * 1
    total = (x + 1).sum()
    total.backward()
    total.backward()
    return x.grad, y


@pytest.mark.row("A17")
@as_torch("""
    [tensor(18.0)]
    [tensor(6.0)]
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_only_what_ran_is_freed(torch):
    x = leaf(torch, 3.0)
    y = x * x
    z = y * y
    to_middle = torch.autograd.grad(z, y)
    to_leaf = torch.autograd.grad(y, x)
    shared = x * x
    first, second = shared * x, shared * x
    first.backward()
    return to_middle, to_leaf, error(second.backward)


@pytest.mark.row("A18")
@as_torch("""
    tensor(12.0, requires_grad=True)
    tensor(12.0, requires_grad=True)
    tensor(6.0)
""")
def test_create_graph_gives_second_derivatives(torch):
    x = leaf(torch, 2.0)
    y = x * x * x
    warned(y.backward, None, None, True)
    first = x.grad
    x.grad = None
    warned(first.backward, None, None, True)
    second = x.grad
    x.grad = None
    second.backward()
    return first, second, x.grad


@pytest.mark.row("A19")
@as_torch
def test_create_graph_warns(torch):
    x = leaf(torch, 2.0)
    warnings = [
        warned(functools.partial((x * x).backward, create_graph=True)),
        warned(functools.partial(torch.autograd.backward, x * x, create_graph=True)),
        warned(functools.partial(torch.autograd.grad, x * x, x, create_graph=True)),
    ]
    x.grad = None
    return warnings


@pytest.mark.row("A19")
def test_the_warning_points_to_the_caller():
    x = leaf(jaxgrad, 2.0)
    for call in (x.backward, functools.partial(jaxgrad.autograd.backward, x)):
        with pytest.warns(UserWarning, match="reference cycle") as warnings:
            call(create_graph=True)
        assert warnings[0].filename == __file__


@pytest.mark.row("A20")
@as_torch("""
    tensor(18.0)
    tensor(2.0)
    tensor(6.0)
""")
def test_only_inputs_are_filled(torch):
    x, y, z = leaf(torch, 2.0), leaf(torch, 3.0), leaf(torch, 4.0)
    (x * y * z).backward(inputs=[x, z])
    (x * y).backward(inputs=x)
    (x * y).backward(inputs=None)
    return x.grad, y.grad, z.grad


@pytest.mark.row("A21")
@as_torch("""
    [tensor(3.0), None]
    [tensor(3.0), None]
    [tensor(3.0), None]
    [tensor(3.0), None]
    [tensor(3.0), None]
    [tensor(3.0), None]
    [tensor(3.0), None]
""")
def test_forms_of_inputs(torch):
    edge = torch.autograd.graph.get_gradient_edge
    gradients = []
    for form in (
        lambda x: x,
        lambda x: [x],
        lambda x: (x, x),
        lambda x: {"x": x},
        lambda x: iter([x]),
        lambda x: edge(x),
        lambda x: [edge(x), x],
    ):
        x, y = leaf(torch, 2.0), leaf(torch, 3.0)
        (x * y).backward(inputs=form(x))
        gradients.append((x.grad, y.grad))
    return gradients


@pytest.mark.row("A21")
@as_torch
def test_an_edge_of_what_was_computed_has_no_grad_to_fill(torch):
    x = leaf(torch, 2.0)
    y = x * x
    (y * 3).backward(inputs=[torch.autograd.graph.get_gradient_edge(y)])
    return warned(lambda: y.grad), x.grad


@pytest.mark.row("A22")
@as_torch("""
    RuntimeError('`inputs` argument to `backward()` cannot be empty.')
    RuntimeError('`inputs` argument to `backward()` cannot be empty.')
    RuntimeError('`inputs` argument to `backward()` cannot be empty.')
""")
def test_empty_inputs_of_backward(torch):
    x = leaf(torch, 2.0)
    return [error(functools.partial((x * x).backward, inputs=empty)) for empty in ([], (), {})]


@pytest.mark.row("A23")
@as_torch("""
    TypeError(
     '`inputs` argument to `backward()` must be a dict, not OrderedDict. Other Mapping '
     'types are not supported.')
    TypeError(
     '`inputs` argument to `backward()` must be a dict, not mappingproxy. Other Mapping '
     'types are not supported.')
""")
def test_inputs_of_another_mapping(torch):
    x = leaf(torch, 2.0)
    others = collections.OrderedDict(x=x), types.MappingProxyType({"x": x})
    return [error(functools.partial((x * x).backward, inputs=other)) for other in others]


@pytest.mark.row("A24")
@as_torch("""
    tensor(3.0)
    True
    tensor(6.0)
    False
    None
    tensor(2.0)
    tensor(12.0)
""")
def test_inputs_that_are_no_leaves(torch):
    x = leaf(torch, 2.0)
    y = x * x
    z = y * 3
    z.backward(inputs=[y, y], retain_graph=True)
    first, retains = y.grad, y.retains_grad
    z.backward(inputs=[y], retain_graph=True)
    both = leaf(torch, 2.0)
    w = both * both
    (w * both).backward(inputs=[w, both])
    return first, retains, y.grad, y.grad is first, x.grad, w.grad, both.grad


@pytest.mark.row("A24")
@as_torch("""
    tensor(1.0)
    tensor(4.0)
""")
def test_an_output_among_the_inputs(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.backward(inputs=[y, x])
    return y.grad, x.grad


@pytest.mark.row("A25")
@as_torch("""
    RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    None
""")
def test_inputs_that_require_no_grad(torch):
    x, constant = leaf(torch, 2.0), torch.tensor(1.0)
    failure = error(functools.partial((x * x).backward, inputs=[x, constant]))
    return failure, x.grad


@pytest.mark.row("A25")
@as_torch("RuntimeError('all inputs have to be Tensors or GradientEdges, but got int')")
def test_inputs_that_are_no_tensors(torch):
    x = leaf(torch, 2.0)
    return error(functools.partial((x * x).backward, inputs=[3]))


@pytest.mark.row("A26")
@as_torch("""
    tensor(4.0)
    None
    None
""")
def test_inputs_that_are_not_reached(torch):
    x, other = leaf(torch, 2.0), leaf(torch, 1.0)
    y = other * other
    (x * x).backward(inputs=[other, y, x])
    return x.grad, other.grad, y.grad


@pytest.mark.row("A27")
@as_torch("""
    warned([FutureWarning('`grad_variables` is deprecated. Use `grad_tensors` instead.')], None)
    tensor([2.0, 4.0])
""")
def test_grad_variables(torch):
    x = leaf(torch, 1.0, 2.0)
    call = functools.partial(torch.autograd.backward, x * x, grad_variables=torch.ones(2))
    return warned(call), x.grad


@pytest.mark.row("A28")
@as_torch("""
    warned([FutureWarning('`grad_variables` is deprecated. Use `grad_tensors` instead.')],
           RuntimeError(
            '`grad_tensors` and `grad_variables` (deprecated) arguments both passed to '
            '`backward()`. Please only use `grad_tensors`.'))
    None
""")
def test_grad_variables_beside_grad_tensors(torch):
    x, ones = leaf(torch, 1.0, 2.0), torch.ones(2)
    call = functools.partial(torch.autograd.backward, x * x, ones, grad_variables=ones)
    return warned(lambda: error(call)), x.grad


@pytest.mark.row("A29")
@as_torch("""
    RuntimeError(
     'backward() called inside a functorch transform. This is not supported, please use '
     'functorch.grad or functorch.vjp instead or call backward() outside of functorch '
     'transforms.')
""")
def test_backward_inside_a_transform(torch):
    def function(x):
        (x * x).sum().backward()
        return x.sum()

    return error(torch.func.grad(function), torch.ones(2))


@pytest.mark.row("A30")
@as_torch("""
    tensor(2.0)
    tensor([5.0, 6.0])
""")
def test_backward_of_a_leaf(torch):
    x, y = leaf(torch, 3.0), leaf(torch, 1.0, 2.0)
    x.backward()
    x.backward()
    y.backward(torch.tensor([5.0, 6.0]))
    return x.grad, y.grad


@pytest.mark.row("A31")
@as_torch("""
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
    RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')
""")
def test_backward_without_a_graph(torch):
    with torch.no_grad():
        unrecorded = leaf(torch, 2.0) * 2
    x = leaf(torch, 2.0)
    return (
        error(torch.tensor(1.0).backward),
        error(unrecorded.backward),
        error((x * x).detach().backward),
        error(torch.tensor(3).backward),
    )


@pytest.mark.row("A32")
@pytest.mark.slow
@as_torch("""
    tensor([9.0, -12.0], dtype=float16)
    tensor([9.0, -12.0], dtype=bfloat16)
    tensor([9.0, -12.0])
    tensor([9.0, -12.0], dtype=float64)
    tensor([9.0+0.0j, -12.0-0.0j])
    tensor([9.0+0.0j, -12.0-0.0j], dtype=complex128)
""")
def test_dtypes_that_have_gradients(torch):
    gradients = []
    for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        x = torch.tensor([1.5, -2.0], dtype=getattr(torch, name), requires_grad=True)
        y = x * x * 3
        y.backward(torch.ones_like(y))
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("A32")
@as_torch("""
    RuntimeError('Only Tensors of floating point and complex dtype can require gradients')
    False
    False
""")
def test_integers_have_no_gradient(torch):
    make = functools.partial(torch.tensor, [1, 2], requires_grad=True)
    x = leaf(torch, 1.0, 2.0)
    return error(make), (x.to(torch.int64) * 2).requires_grad, (x > 1).requires_grad


@pytest.mark.row("A38")
@as_torch("""
    tensor(4.0)
    tensor(36.0)
""")
def test_nodes_that_do_not_lead_to_the_root_are_not_run(torch):
    x = leaf(torch, 2.0)
    y = x * x
    unused = y * y
    used = y + 1
    used.backward(retain_graph=True)
    first = x.grad.clone()
    unused.backward()
    return first, x.grad


@pytest.mark.row("A40")
@as_torch("""
    RuntimeError('torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead')
""")
def test_variable_is_deprecated(torch):
    return error(torch.autograd.variable, 3)


@pytest.mark.row("A40")
def test_the_class_is_in_the_module_too():
    assert jaxgrad.autograd.variable.Variable is jaxgrad.autograd.Variable


@pytest.mark.row("A41")
@as_torch("""
    tensor([1.0, 1.0], requires_grad=True)
    tensor([3.0, 3.0])
    False
    True
    [True, True, False]
    warned([UserWarning(
             'volatile was removed and now has no effect. Use `with torch.no_grad():` instead.')],
           tensor([1.0, 1.0]))
""")
def test_Variable_makes_tensors(torch):
    Variable = torch.autograd.Variable
    x = torch.ones(2)
    variable = Variable(x, requires_grad=True)
    (variable * 3).sum().backward()
    old = warned(lambda: Variable(x, volatile=True))
    kinds = isinstance(x, Variable), isinstance(variable, torch.Tensor), isinstance(3, Variable)
    return variable, variable.grad, x.requires_grad, type(variable) is torch.Tensor, kinds, old


@pytest.mark.row("A41")
@as_torch("TypeError('Variable data has to be a tensor, but got int')")
def test_Variable_of_something_else(torch):
    return error(torch.autograd.Variable, 3)


# the __all__ of PyTorch 2.13's modules
MODULES = {
    "grad_mode": "no_grad enable_grad set_grad_enabled inference_mode set_multithreading_enabled "
    "enforce_grad_layout_policy",
    "graph": "saved_tensors_hooks save_on_cpu disable_saved_tensors_hooks "
    "register_multi_grad_hook allow_mutation_on_saved_tensors Node GradientEdge get_gradient_edge "
    "increment_version region_activation_memory_budget "
    "set_warn_on_accumulate_grad_stream_mismatch set_override_stale_capture_stream",
    "functional": "vjp jvp jacobian hessian hvp vhp",
    "forward_ad": "UnpackedDualTensor enter_dual_level exit_dual_level make_dual unpack_dual "
    "dual_level",
    "anomaly_mode": "detect_anomaly set_detect_anomaly",
    "profiler": "profile record_function emit_itt emit_nvtx load_nvprof EnforceUnique "
    "parse_nvprof_trace KinetoStepTracker EventList FunctionEvent MemRecordsAcc",
    "function": "FunctionCtx BackwardCFunction FunctionMeta Function once_differentiable "
    "InplaceFunction NestedIOFunction",
}


@pytest.mark.row("A42")
@as_torch("""
    ['grad_mode', [True, True, True, True, True, True]]
    ['graph', [True, True, True, True, True, True, True, True, True, True, True, True]]
    ['functional', [True, True, True, True, True, True]]
    ['forward_ad', [True, True, True, True, True, True]]
    ['anomaly_mode', [True, True]]
    ['profiler', [True, True, True, True, True, True, True, True, True, True, True]]
    ['function', [True, True, True, True, True, True, True]]
""")
def test_exports_of_the_modules(torch):
    return [
        (name, [hasattr(getattr(torch.autograd, name), export) for export in names.split()])
        for name, names in MODULES.items()
    ]


@pytest.mark.row("A42")
@as_torch("""
    ['Function', 'NestedIOFunction', 'Variable', 'backward', 'detect_anomaly', 'enable_grad',
     'enforce_grad_layout_policy', 'grad', 'grad_mode', 'gradcheck', 'gradgradcheck',
     'inference_mode', 'no_grad', 'set_detect_anomaly', 'set_grad_enabled',
     'set_multithreading_enabled', 'variable']
    [True, True, True, True, True, True, True, True, True, True, True, True, True, True, True, True,
     True, True, True, True, True, True, True]
""")
def test_exports_of_autograd(torch):
    names = sorted(torch.autograd.__all__)
    modules = ("forward_ad", "functional", "graph", "profiler", "function", "anomaly_mode")
    return names, [hasattr(torch.autograd, name) for name in (*names, *modules)]


# ---- where gradients are


@pytest.mark.row("A33")
def test_a_gradient_needs_no_synchronisation():
    """There are no streams: a thread that reads a gradient waits for it."""
    x = leaf(jaxgrad, *[1.0] * 300)
    matrix = x.outer(x)
    (matrix @ matrix @ matrix).sum().backward()
    readings = []
    reader = threading.Thread(target=lambda: readings.append(x.grad.numpy()[:2].tolist()))
    reader.start()
    reader.join()
    assert readings[0] == pytest.approx([6 * 300.0**3] * 2)


@pytest.mark.row("A34")
@as_torch
def test_layout_of_gradients(torch):
    whole = torch.arange(24.0).reshape(2, 3, 4)
    leaves = {
        "contiguous": whole.clone(),
        "permuted": whole.permute(2, 0, 1),
        "transposed": torch.arange(6.0).reshape(2, 3).t(),
        "sliced": whole[:, ::2],
        "expanded": torch.ones(3, 1).expand(3, 4),
        "empty": torch.zeros(0, 3).t(),
    }
    layouts = {}
    for name, source in leaves.items():
        x = source.detach().requires_grad_()
        (x * 2).sum().backward()
        first = x.grad.stride()
        (x * 2).sum().backward()
        layouts[name] = list(first), list(x.grad.stride()), x.grad
    return layouts


@pytest.mark.row("A34")
@as_torch("""
    [2, 1]
    tensor([[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]])
""")
def test_layout_of_a_gradient_that_is_set_is_kept(torch):
    x = torch.ones(2, 3).t().detach().requires_grad_()
    x.grad = torch.zeros(3, 2)
    (x * 2).sum().backward()
    return list(x.grad.stride()), x.grad


@as_torch("""
    [None, False, ['hook', 'accumulated']]
    [None, False, ['hook', 'accumulated']]
    [None, False, ['hook', 'accumulated']]
    [tensor([1.0, 1.0]), False, ['hook', 'accumulated']]
    [tensor([2.0, 4.0]), True, ['hook', 'accumulated']]
""")
def test_a_leaf_that_requires_no_grad_any_more_gets_none(torch):
    def gradient_after(change, before=None):
        x, called = leaf(torch, 1.0, 2.0), []
        x.register_hook(lambda gradient: called.append("hook"))
        x.register_post_accumulate_grad_hook(lambda _: called.append("accumulated"))
        y = (x * x).sum()
        x.grad = before
        change(x)
        y.backward()
        return x.grad, x.requires_grad, called

    return [
        gradient_after(lambda x: x.requires_grad_(False)),
        gradient_after(lambda x: x.detach_()),
        gradient_after(lambda x: setattr(x, "requires_grad", False)),
        gradient_after(lambda x: x.requires_grad_(False), torch.ones(2)),
        gradient_after(lambda x: x.requires_grad_(False).requires_grad_()),
    ]


def word(report):
    """The type of a warning or error and the words that both libraries share."""
    return [(warning["error"], warning["says"].split(". ")[0]) for warning in report["warnings"]]


@pytest.mark.row("edge_01")
@as_torch("""
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
    tensor(6.0)
    tensor(2.0)
""")
def test_backward_twice_raises(torch):
    x, y = leaf(torch, 3.0), leaf(torch, 3.0)
    square, sum_ = x * x, y + 1
    square.backward()
    second = error(square.backward)
    sum_.backward()
    sum_.backward()
    return second, x.grad, y.grad


@pytest.mark.row("edge_02")
@as_torch("""
    tensor(8.0)
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_retain_graph_lets_a_pass_run_again(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward)


@pytest.mark.row("edge_03")
@as_torch
def test_graphs_freed_in_part(torch):
    a = leaf(torch, 3.0)
    y = a * a
    z = y * y
    outer, inner = torch.autograd.grad(z, y), torch.autograd.grad(y, a)
    b = leaf(torch, 3.0)
    shared = b * b
    z, w = shared * 2, shared * 3
    z.backward()
    return outer, inner, b.grad, error(w.backward), b.grad


@pytest.mark.row("edge_04")
@as_torch("""
    True
    tensor(12.0)
    False
    tensor(12.0)
    tensor(18.0, requires_grad=True)
    [['UserWarning',
      ('Using backward() with create_graph=True will create a reference cycle between the '
       'parameter and its gradient which can cause a memory leak')]]
""")
def test_accumulation_and_identity_of_grad(torch):
    a = leaf(torch, 3.0)
    (a * a).backward()
    g = a.grad
    (a * a).backward()
    same, total = a.grad is g, g.clone()
    told = warned(lambda: (a * a).backward(create_graph=True))
    answers = same, total, a.grad is g, g, a.grad, word(told)
    a.grad = None
    return answers


@pytest.mark.row("edge_05")
@as_torch("""
    tensor(3.0)
    tensor(3.0)
    True
""")
def test_a_preset_gradient(torch):
    a, gradient = leaf(torch, 1.0), torch.tensor(1.0)
    a.grad = gradient
    (a * 2).backward()
    return a.grad, gradient, a.grad is gradient


@pytest.mark.row("edge_09")
@as_torch("""
    [[tensor(12.0), None], [None, tensor(2.0)], [tensor(12.0), None], [tensor(12.0), tensor(2.0)]]
    None
    [RuntimeError('`inputs` argument to `backward()` cannot be empty.'),
     TypeError(
      '`inputs` argument to `backward()` must be a dict, not OrderedDict. Other Mapping '
      'types are not supported.'),
     RuntimeError("can't retain_grad on Tensor that has requires_grad=False")]
""")
def test_inputs_of_backward(torch):
    gradients = []
    for form in (lambda a, b: [a], lambda a, b: b, lambda a, b: {"a": a}, lambda a, b: (a, b)):
        a = leaf(torch, 3.0)
        b = a * a
        (b * 2).backward(inputs=form(a, b))
        gradients.append((a.grad, b.grad if b.retains_grad else None))
    a, other, plain = leaf(torch, 3.0), leaf(torch, 1.0), torch.tensor(1.0)
    y = a * a
    y.backward(inputs=[other], retain_graph=True)
    refused = [error(lambda w=w: y.backward(inputs=w)) for w in ([], OrderedDict(a=a))]
    words = "can't retain_grad on Tensor that has requires_grad=False"
    refused.append(error(lambda: y.backward(inputs=[plain]), words=words))
    return gradients, other.grad, refused


@pytest.mark.row("edge_10")
@as_torch("""
    [tensor(2.0), tensor([2.0]), tensor([[2.0]])]
    [RuntimeError('grad can be implicitly created only for scalar outputs'),
     RuntimeError('grad can be implicitly created only for scalar outputs'),
     RuntimeError(
      'grad can be implicitly created only for real scalar outputs but got '
      'torch.complex64')]
""")
def test_implicit_gradient_of_one_element(torch):
    words = "grad can be implicitly created only for"
    gradients, refused = [], []
    for shape in ((), (1,), (1, 1)):
        x = torch.full(shape, 3.0, requires_grad=True)
        (x * 2).backward()
        gradients.append(x.grad)
    for shape in ((3,), (0,)):
        x = torch.ones(shape, requires_grad=True)
        refused.append(error((x * 2).backward, words=f"{words} scalar outputs"))
    z = torch.tensor(1 + 2j, requires_grad=True)
    refused.append(error((z * z).backward, words=f"{words} real scalar outputs but got"))
    return gradients, refused


@pytest.mark.row("edge_11")
@as_torch("""
    tensor([2.0, 4.0])
    RuntimeError(
     'For complex Tensors, both grad_output and output are required to have the same '
     'dtype. Mismatch in dtype: grad_output[0] has a dtype of torch.complex64 and '
     'output[0] has a dtype of torch.float32.')
    TypeError('gradients can be either Tensors or None, but got float')
""")
def test_dtype_of_a_gradient(torch):
    x = leaf(torch, 1.0, 2.0)
    (x * x).backward(torch.ones(2, dtype=torch.float64))
    complex_, words = torch.ones(2, dtype=torch.complex64), "For complex Tensors, both grad_output"
    return x.grad, error((x * x).backward, complex_, words=words), error((x * x).backward, [1.0])


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


@pytest.mark.row("edge_32")
@as_torch("""
    tensor([[24.0], [24.0], [24.0]])
    tensor([12.0, 12.0, 12.0, 12.0])
    tensor(60.0)
    RuntimeError(
     'unsupported operation: more than one element of the written-to tensor refers to a '
     'single memory location. Please clone() the tensor before performing the operation.')
""")
def test_broadcasting_of_gradients(torch):
    column = torch.arange(1.0, 4.0).reshape(3, 1).requires_grad_()
    row, scalar = torch.arange(1.0, 5.0).requires_grad_(), leaf(torch, 2.0)
    (column * row * scalar + column).sum().backward()
    expanded = torch.zeros(3, 1).expand(3, 4)
    words = "unsupported operation: more than one element of the written-to tensor refers to"
    return column.grad, row.grad, scalar.grad, error(expanded.add_, 1.0, words=words)


@pytest.mark.row("edge_33")
@as_torch("""
    [tensor([[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]), [1, 3], [1, 3]]
    [tensor([[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]), [3, 1], [3, 1]]
    [tensor([[[0.0, 6.0]], [[2.0, 8.0]], [[4.0, 10.0]]]), [1, 6, 3], [1, 6, 3]]
""")
def test_strides_of_gradients(torch):
    layouts = []
    for turn in (lambda t: t.t(), lambda t: t, lambda t: t.unsqueeze(0).permute(2, 0, 1)):
        x = turn(torch.arange(6.0).reshape(2, 3)).detach().requires_grad_()
        (x * x).sum().backward()
        layouts.append((x.grad, list(x.grad.stride()), list(x.stride())))
    return layouts


@pytest.mark.row("edge_34")
@pytest.mark.slow
@as_torch("""
    [tensor(2.0+4.0j)]
    [tensor(3.0+0.0j), tensor(1.0)]
    [tensor(0.0+0.0j)]
    [tensor(0.0+0.0j)]
    [tensor(6.0+8.0j)]
""")
def test_gradients_of_complex_leaves(torch):
    def gradient(function, *values):
        leaves = [torch.tensor(value, requires_grad=True) for value in values]
        return torch.autograd.grad(function(*leaves), leaves)

    return (
        gradient(lambda z: (z * z).abs(), 1 + 2j),
        gradient(lambda z, x: (z * x).real, 1 + 2j, 3.0),
        gradient(lambda z: z.abs(), 0j),
        gradient(lambda z: z.angle(), 0j),
        gradient(lambda z: (z * z.conj()).real, 3 + 4j),
    )


@pytest.mark.row("edge_35")
@as_torch("""
    [False, False, False, False]
    tensor([2.0, 1.0, 0.0], dtype=float64)
    tensor([2.0, 1.0, 0.0], dtype=float64)
""")
def test_gradients_through_integer_indices(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    none = [tensor.requires_grad for tensor in (x.argmax(), x > 2, x.long(), x.sign() > 0)]
    index = torch.tensor([0, 0, 1])
    x[index].sum().backward()
    gradient = x.grad
    x.grad = None
    x.gather(0, index).sum().backward()
    return none, gradient, x.grad


@pytest.mark.row("edge_35")
def test_indices_out_of_range():
    """JAX would take the last one."""
    x, index = numbers(jaxgrad, 1.0, 2.0, 3.0), jaxgrad.tensor([0, 3])
    words = "index 3 is out of bounds for dimension 0 with size 3"
    for read in (lambda: x[index], lambda: x[3], lambda: x.index_select(0, index)):
        with pytest.raises(IndexError, match=words):
            read()
    with pytest.raises(RuntimeError, match=words):
        x.gather(0, index)


@pytest.mark.row("edge_37")
@pytest.mark.slow
@as_torch
def test_empty_and_scalar_tensors(torch):
    x = torch.zeros(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    y = torch.zeros(0, requires_grad=True)
    reduced = [y.sum(), y.prod(), y.mean()]
    gradients = [torch.autograd.grad(value, y) for value in reduced]
    half, scalar = torch.ones(2, dtype=torch.float16, requires_grad=True), leaf(torch, 2.0)
    product = half * scalar
    product.sum().backward()
    integer = torch.tensor(3) * leaf(torch, 2.0)
    return x.grad, reduced, gradients, product, half.grad, scalar.grad, integer


@pytest.mark.slow
def test_gradients_of_shards_averaged_by_a_hook():
    """A mean over shards of equal size, each with its own pass, averaged by a hook."""
    data = jaxgrad.arange(12.0).reshape(4, 3)
    weight = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    averaged = weight.register_hook(lambda gradient: gradient / 4)
    for row in data:
        ((row * weight) ** 2).sum().backward()
    averaged.remove()
    whole = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ((data * whole) ** 2).sum(1).mean().backward()
    numpy.testing.assert_allclose(weight.grad.numpy(), whole.grad.numpy(), rtol=1e-6)
    closed = 2 * (data.numpy() ** 2).mean(0) * numpy.array([1.0, 2.0, 3.0])
    numpy.testing.assert_allclose(whole.grad.numpy(), closed, rtol=1e-6)


@pytest.mark.parametrize(
    "test",
    [
        test_backward_twice_raises,
        test_retain_graph_lets_a_pass_run_again,
        test_graphs_freed_in_part,
        test_accumulation_and_identity_of_grad,
        test_a_preset_gradient,
        test_inputs_of_backward,
        test_implicit_gradient_of_one_element,
        test_dtype_of_a_gradient,
        pytest.param(test_broadcasting_of_gradients, marks=pytest.mark.slow),
        pytest.param(test_strides_of_gradients, marks=pytest.mark.slow),
        pytest.param(test_gradients_of_complex_leaves, marks=pytest.mark.slow),
        pytest.param(test_gradients_through_integer_indices, marks=pytest.mark.slow),
        pytest.param(test_empty_and_scalar_tensors, marks=pytest.mark.slow),
    ],
    ids=lambda test: test.__name__,
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()


def test_a_graph_that_saves_numbers_alone_runs_again():
    total, p = jaxgrad.zeros(1), jaxgrad.ones(1, requires_grad=True)
    gradients = []
    for _ in range(3):
        total.sub_(p, alpha=-1.5)
        total.sum().backward()
        gradients.append(p.grad.item())
    assert gradients == [1.5, 4.5, 9.0]  # the first as in PyTorch; by hand: 1.5 * (1 + 2 + 3)
