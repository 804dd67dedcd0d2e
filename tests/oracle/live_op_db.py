"""Entries of PyTorch's own table of operators (`op_db`), with its sample inputs and wrong inputs.

make oracle ARGUMENTS="op_db"     (`--seed N` repeats a run; `--all` compares all entries,
ENTRIES="addmm,std" these)

Of each entry in a random choice, samples in float64 and in another dtype are compared: values,
dtypes, gradients, forward mode, second derivatives, in-place and `out=` forms, methods, and the
types of errors. All derivatives and in-place forms are compared in compiled functions too, and
`vmap` along random dimensions with derivatives through and inside of it. Where both round, ours may
be as far from PyTorch's results in float64 as PyTorch's are. Strides are compared in
live_strides.py. ACCEPTED lists what may differ, with the reasons; what no longer differs fails.

Not reached: the entries named jiterator, which are of GPUs, and three that have no dtype on a CPU.
"""

import copy
import functools
import itertools
import os
import random
from typing import NamedTuple

import numpy
import pytest
import torch
from helpers import checks
from oracle import op_db
from oracle.seed import SEED, drawn

import jaxgrad

ONE_OF = 24  # entries
ENTRIES = os.environ.get("ENTRIES")
SAMPLES = 2  # of a check and dtype
WRONG_CALLS = 4
DTYPES = (
    *("complex128", "complex64", "complex32", "float32", "float16", "bfloat16"),
    *("int64", "int32", "int16", "int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"),
)
# of the largest element: two programs in single precision, the slopes of ill-conditioned samples,
# and some roundings to 8 or 11 bits
TOLERANCES = {"float32": 1e-3, "complex64": 1e-3}
TOLERANCES |= {"bfloat16": 2e-2, "float16": 3e-3, "complex32": 3e-3}

# to which PyTorch is right in double precision (docs/conventions.md)
PRECISE = 1e-7
LESS_PRECISE = dict.fromkeys(
    (
        *("special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1"),
        *("special.airy_ai", "special.modified_bessel_k0", "special.modified_bessel_k1"),
    ),
    2e-5,
)

RANDOM = (
    *("dropout", "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal"),
    *("uniform", "rand", "multinomial", "fractional_max_pool", "rrelu", "empty", "lowrank"),
    *("poisson", "resize_", "multi_head", "scaled_dot_product"),
)
# checks that compare the same numbers as another one
FORMS = {
    **{"method": "value", "compiled": "value", "vmap": "value"},
    **{
        "compiled gradient": "gradient",
        "compiled backward": "gradient",
        "vmap gradient": "gradient",
    },
    **{"compiled second": "second", "vmap second": "second", "compiled forward": "forward"},
    **{"compiled in place": "in place", "compiled in-place gradient": "gradient"},
}
SLOPES = (
    *("gradient", "forward", "second"),
    *("compiled gradient", "compiled backward", "compiled second", "compiled forward"),
    *("compiled in-place gradient", "vmap gradient", "vmap second"),
)


class Difference(NamedTuple):
    """Why the results of some entries differ in some checks; in all dtypes, or in some."""

    reason: str
    entries: str
    checks: tuple[str, ...]
    dtypes: str = ""

    def holds(self, entry, check, dtype) -> bool:
        is_check = {check, FORMS.get(check)} & {*self.checks}
        is_dtype = not self.dtypes or str(dtype).removeprefix("torch.") in self.dtypes.split()
        return entry.full_name in self.entries.split() and bool(is_check) and is_dtype


# those that no sample shows any more fail
ACCEPTED = [
    Difference(
        "the signs or phases of the vectors are a choice; what does not depend on it is compared",
        "svd linalg.svd linalg.eig linalg.eigh",
        ("value", "out"),
    ),
    Difference(
        "which of several equal elements is given is a choice of PyTorch's algorithms",
        "kthvalue topk mode sort msort argsort",
        ("value", "out", *SLOPES),
    ),
    Difference(
        "PyTorch's slopes are wrong, NaN or infinite (docs/conventions.md)",
        "as_strided_scatter cholesky_inverse logcumsumexp linalg.norm.subgradients_at_zero "
        "masked.logaddexp nn.functional.linear_cross_entropy.chunked_none",
        SLOPES,
    ),
    Difference(
        "PyTorch's forward mode over reverse mode is wrong (docs/conventions.md)",
        "triangular_solve",
        ("vmap second",),
    ),
    Difference(
        "PyTorch's second derivatives are 0 (docs/conventions.md)",
        "nn.functional.linear_cross_entropy.chunked",
        ("second",),
    ),
    Difference(
        "PyTorch's tangents of half precision have single precision",
        "frexp renorm",
        ("forward",),
        "float16 bfloat16",
    ),
    Difference(
        "PyTorch has 2e13 where the value is infinite: at -1, -2, ... (docs/conventions.md)",
        "polygamma.polygamma_n_0 polygamma.polygamma_n_1 polygamma.polygamma_n_2 "
        "polygamma.polygamma_n_3 polygamma.polygamma_n_4",
        ("value", "out"),
        "int8 int16 int32 int64",
    ),
    Difference(
        "PyTorch writes to wrong places of strided `out=` (docs/conventions.md)",
        "fft.ihfft2 fft.ihfftn",
        ("out",),
    ),
    Difference(
        "PyTorch cannot resize storages that NumPy's arrays lend, which jaxgrad copies",
        "cat gather",
        ("errors",),
    ),
    Difference(
        "a bool may be a start; a start that is no integer, and a dimension that does not exist, "
        "raise what other arguments raise",
        "narrow narrow_copy",
        ("errors",),
    ),
    Difference(
        "special methods of tensors are called with numbers in place of tensors",
        "__radd__ __rmul__ __rand__ __ror__ __rxor__ __rmod__ __rpow__ __rsub__",
        ("errors",),
    ),
]


class Call:
    """A sample as a call in both libraries. The entry is left out: a trace walks through the Python
    objects that a function reaches, and an entry reaches all of PyTorch's tests.
    """

    def __init__(self, entry, sample, in_dims=0, loops=True, copied=op_db.cloned):
        arguments = copied([sample.input, list(sample.args), dict(sample.kwargs)])
        self.arguments = {torch: arguments, jaxgrad: op_db.converted(arguments)}
        self.in_dims, self.loops = in_dims, loops
        self.varies_first_alone = entry.name in FIRST_ALONE
        self.functions = {torch: entry.op, jaxgrad: op_db.function_of(entry.op)}
        self.processes = op_db.pair(sample.output_process_fn_grad)
        self.wrappers = op_db.pair(entry.gradcheck_wrapper)
        self.methods = op_db.pair(entry.method_variant)
        self.in_place_forms = op_db.pair(entry.inplace_variant)

    def differentiable(self, library):
        kind = library.Tensor
        return [t for t in op_db.tensors(self.arguments[library], kind) if t.requires_grad]

    def results(self, library, arguments=None):
        """The processed results; the wrapper makes matrices Hermitian and the like."""
        first, args, kwargs = self.arguments[library] if arguments is None else arguments
        results = self.wrappers[library](self.functions[library], first, *args, **kwargs)
        return op_db.tensors(self.processes[library](results), library.Tensor)

    def with_tensors(self, library, tensors, chosen):
        """The arguments with other tensors in place of those that are chosen."""
        supply = iter(tensors)

        def replaced(value):
            if isinstance(value, library.Tensor):
                return next(supply) if chosen(value) else value
            if isinstance(value, dict):
                return {name: replaced(item) for name, item in value.items()}
            return type(value)(map(replaced, value)) if type(value) in (list, tuple) else value

        return replaced(self.arguments[library])


def cotangents(library, tensors):
    """Vectors of eighths, which every dtype holds."""
    draw, vectors = numpy.random.default_rng(5), []
    for tensor in tensors:
        array = draw.integers(-24, 25, tuple(tensor.shape)) / 8
        if tensor.is_complex():
            array = array + 1j * draw.integers(-24, 25, tuple(tensor.shape)) / 8
        vectors.append(library.from_numpy(numpy.array(array)).to(tensor.dtype))
    return vectors


def value(library, call):
    first, args, kwargs = call.arguments[library]
    return op_db.tensors(call.functions[library](first, *args, **kwargs), library.Tensor)


def gradient(library, call, arguments=None, create_graph=False):
    arguments = call.arguments[library] if arguments is None else arguments
    results = [t for t in call.results(library, arguments) if t.requires_grad]
    inputs = [t for t in op_db.tensors(arguments, library.Tensor) if t.requires_grad]
    options = {"create_graph": create_graph, "materialize_grads": True}
    vectors = cotangents(library, results)
    return list(library.autograd.grad(results, inputs, vectors, **options)) if results else []


def second(library, call):
    first = gradient(library, call, create_graph=True)
    return second_of(library, first, call.differentiable(library))


def second_of(library, first, inputs):
    """The derivatives of first ones."""
    pairs = zip(first, cotangents(library, first), strict=True)
    recorded = [pair for pair in pairs if pair[0].requires_grad]
    if not recorded:  # the gradient does not depend on the inputs
        return [library.zeros_like(t, requires_grad=False) for t in inputs]
    first, vectors = zip(*recorded, strict=True)
    return list(library.autograd.grad(first, inputs, vectors, materialize_grads=True))


def forward(library, call):
    inputs, modes = call.differentiable(library), library.autograd.forward_ad
    with modes.dual_level():
        vectors = cotangents(library, inputs)
        duals = [modes.make_dual(t.detach(), v) for t, v in zip(inputs, vectors, strict=True)]
        arguments = call.with_tensors(library, duals, lambda t: t.requires_grad)
        pairs = [modes.unpack_dual(t) for t in call.results(library, arguments)]
    return [
        library.zeros_like(primal) if tangent is None else tangent
        for primal, tangent in pairs
        if primal.is_floating_point() or primal.is_complex()
    ]


def in_place(library, call):
    first, args, kwargs = call.arguments[library]
    target = first.detach().clone()
    return [call.in_place_forms[library](target, *args, **kwargs), target]


def out(library, call):
    first, args, kwargs = call.with_tensors(
        library,
        [t.detach() for t in op_db.tensors(call.arguments[library], library.Tensor)],
        lambda t: True,
    )
    function = call.functions[library]
    results = function(first, *args, **kwargs)
    is_single = isinstance(results, library.Tensor)
    outs = [library.empty(t.shape, dtype=t.dtype) for t in ([results] if is_single else results)]
    function(first, *args, **kwargs, out=outs[0] if is_single else tuple(outs))
    return outs


def method(library, call):
    first, args, kwargs = call.arguments[library]
    return op_db.tensors(call.methods[library](first, *args, **kwargs), library.Tensor)


def compiled_by(check):
    """A check in a compiled function, whose arguments are those of the call."""

    def run(library, call):
        if library is torch:
            return check(torch, call)

        def step(*arguments):
            inner = copy.copy(call)
            inner.arguments = {jaxgrad: list(arguments)}
            return check(jaxgrad, inner)

        return jaxgrad.compile(step)(*call.arguments[jaxgrad])

    return run


def backward(library, call):
    results = [t for t in call.results(library) if t.requires_grad]
    inputs = call.differentiable(library)
    if results:
        library.autograd.backward(results, cotangents(library, results))
    return [library.zeros_like(t) if t.grad is None else t.grad for t in inputs]


def in_place_gradient(library, call):
    """What a recorded tensor is after a write in place, and the gradients through it."""
    first, args, kwargs = call.arguments[library]
    target = first * 1
    call.in_place_forms[library](target, *args, **kwargs)
    inputs = call.differentiable(library)
    if not target.requires_grad:
        return [target]
    vectors = cotangents(library, [target])
    return [target, *library.autograd.grad(target, inputs, vectors, materialize_grads=True)]


def examples(tensor, may_differ):
    """Two examples of a batch: floats differ, and indices are in another order."""
    if not may_differ:
        return [tensor, tensor]
    if tensor.is_floating_point() or tensor.is_complex():
        return [tensor, tensor * 0.875]
    return [tensor, tensor.flip(0) if tensor.ndim else tensor]


def batch_of(library, call):
    """Tensors, those with a mapped dimension of two examples; the dimension of each, or None."""
    tensors = [t.detach() for t in op_db.tensors(call.arguments[library], library.Tensor)]
    first, others = IN_DIMS[call.in_dims if len(tensors) > 1 else call.in_dims % 2]
    dims = [others if number else first for number in range(len(tensors))]
    may_differ = [not (number and call.varies_first_alone) for number in range(len(tensors))]
    stacked = [
        t if dim is None else library.stack(examples(t, differs), dim)
        for t, dim, differs in zip(tensors, dims, may_differ, strict=True)
    ]
    return stacked, tuple(dims)


def mapped(library, call, function, dims):
    """`vmap`, or a loop over the examples: PyTorch's `vmap` lacks operators. The loop copies them:
    an offset of `as_strided` counts from the beginning of an example.
    """
    if not (library is torch and call.loops):
        return library.func.vmap(function, in_dims=dims, randomness="different")

    def loop(*tensors):
        pairs = list(zip(tensors, dims, strict=True))
        rows = [
            function(*[t if dim is None else t.select(dim, number).clone() for t, dim in pairs])
            for number in range(2)
        ]
        return [torch.stack(column) for column in zip(*rows, strict=True)]

    return loop


def of_example(library, call):
    """The call as a function of its tensors."""

    def one(*tensors):
        arguments = call.with_tensors(library, tensors, lambda t: True)
        return tuple(call.results(library, arguments))

    return one


def batched(library, call):
    tensors, dims = batch_of(library, call)
    return list(mapped(library, call, of_example(library, call), dims)(*tensors))


def batched_gradient(library, call, create_graph=False):
    """Gradients through `vmap`."""
    inputs, results = recorded_batch(library, call)
    if not results:
        return []
    options = {"create_graph": create_graph, "materialize_grads": True}
    vectors = cotangents(library, results)
    return list(library.autograd.grad(results, inputs, vectors, **options))


def recorded_batch(library, call):
    tensors, dims = batch_of(library, call)
    originals = op_db.tensors(call.arguments[library], library.Tensor)
    for tensor, original in zip(tensors, originals, strict=True):
        tensor.requires_grad_(original.requires_grad)
    results = mapped(library, call, of_example(library, call), dims)(*tensors)
    return [t for t in tensors if t.requires_grad], [t for t in results if t.requires_grad]


def batched_second(library, call):
    """Second derivatives through `vmap`, and forward over reverse mode inside of it."""
    inputs, results = recorded_batch(library, call)
    if not results:
        return []
    options = {"create_graph": True, "materialize_grads": True}
    vectors = cotangents(library, results)
    first = library.autograd.grad(results, inputs, vectors, **options)
    return second_of(library, first, inputs) + forward_over_reverse(library, call)


def forward_over_reverse(library, call):
    tensors, dims = batch_of(library, call)
    originals = op_db.tensors(call.arguments[library], library.Tensor)
    is_input = [t.requires_grad for t in originals]
    one, func = of_example(library, call), library.func

    def slopes(*tensors):
        def of_inputs(*inputs):
            supply = iter(inputs)
            pairs = zip(tensors, is_input, strict=True)
            results = one(*[next(supply) if chosen else t for t, chosen in pairs])
            return tuple(t for t in results if t.is_floating_point() or t.is_complex())

        def reverse(*inputs):
            results, pull = func.vjp(of_inputs, *inputs)
            return pull(tuple(cotangents(library, results)))

        inputs = [t for t, chosen in zip(tensors, is_input, strict=True) if chosen]
        return func.jvp(reverse, tuple(inputs), tuple(cotangents(library, inputs)))[1]

    return list(mapped(library, call, slopes, dims)(*tensors))


CHECKS = {
    "value": value,
    "gradient": gradient,
    "forward": forward,
    "second": second,
    "in place": in_place,
    "out": out,
    "method": method,
    "compiled": compiled_by(value),
    "compiled gradient": compiled_by(gradient),
    "compiled backward": compiled_by(backward),
    "compiled second": compiled_by(second),
    "compiled forward": compiled_by(forward),
    "compiled in place": compiled_by(in_place),
    "compiled in-place gradient": compiled_by(in_place_gradient),
    "vmap": batched,
    "vmap gradient": batched_gradient,
    "vmap second": batched_second,
}
NEED_FORWARD = "forward", "compiled forward", "vmap second"
NEED_SECOND = "second", "compiled second", "vmap second"
# other pivots would belong to other factors, another tolerance to other singular values
FIRST_ALONE = "linalg.ldl_solve", "linalg.pinv"
IN_DIMS = (0, 0), (-1, -1), (0, None), (None, 0)  # of the first tensor of a call, and of the others


def has_slopes(check, entry, dtype):
    is_differentiable = dtype in entry.supported_backward_dtypes("cpu")
    has_forward = entry.supports_forward_ad or check not in NEED_FORWARD
    has_second = entry.supports_gradgrad or check not in NEED_SECOND
    return is_differentiable and entry.supports_autograd and has_forward and has_second


def applies(check, entry, sample):
    is_tensor = isinstance(sample.input, torch.Tensor)
    if "in place" in check or "in-place" in check:
        return bool(entry.inplace_variant) and is_tensor and not sample.broadcasts_input
    if "vmap" in check and entry.full_name == "as_strided.partial_views":
        return False  # it reaches memory beside that of its example
    has_tensor = bool(op_db.tensors([sample.input, *sample.args], torch.Tensor))
    return {
        "out": entry.supports_out,
        "method": bool(entry.method_variant) and is_tensor,
    }.get(check, has_tensor or "vmap" not in check)


def agree(actual, expected, exact=None, precision=PRECISE):
    """Compare all but the numbers, and these too unless the function is random. exact: gives the
    results in double precision, to which ours may be as near as PyTorch's.
    """
    assert len(actual) == len(expected)
    for place, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        assert tuple(ours.shape) == tuple(theirs.shape), (ours.shape, theirs.shape)
        assert str(ours.dtype) == str(theirs.dtype), (ours.dtype, theirs.dtype)
        assert ours.requires_grad == theirs.requires_grad
        if exact is not None:
            agree_in_numbers(ours, theirs, lambda place=place: exact()[place], precision)


def agree_in_numbers(ours, theirs, exact, precision):
    dtype = str(theirs.dtype).removeprefix("torch.")
    tolerance = TOLERANCES.get(dtype, precision)
    ours, theirs = op_db.numbers(ours), op_db.numbers(theirs)
    try:
        numpy.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    except AssertionError:
        if dtype not in TOLERANCES:
            raise
        precise = op_db.numbers(exact())
        errors = [largest_error(value, precise, dtype) for value in (ours, theirs)]
        assert errors[0] <= max(errors[1], tolerance), errors


def largest_error(values, precise, dtype):
    """The largest error in parts of the largest number; infinite if other elements are finite."""
    usual = abs(precise) <= torch.finfo(getattr(torch, dtype)).max
    if not (numpy.isfinite(values) | ~usual).all():
        return numpy.inf
    scale = max(abs(precise[usual]).max(initial=0), 1.0)
    return abs(values[usual] - precise[usual]).max(initial=0) / scale


REFUSALS = NotImplementedError, RuntimeError, TypeError, ValueError, IndexError, AttributeError


def compare(check, entry, sample, in_dims=0):
    """Whether a check of a sample was possible in PyTorch, after which it is compared."""
    try:
        expected = CHECKS[check](torch, Call(entry, sample, in_dims))
    except REFUSALS:
        return False  # live_errors.py and the wrong calls ask for errors
    try:
        actual = CHECKS[check](jaxgrad, Call(entry, sample, in_dims))
    except RuntimeError:
        if "vmap" in check and is_refused(check, entry, sample, in_dims):
            return False
        raise
    is_random = any(word in entry.full_name for word in RANDOM)

    @functools.cache
    def exact():
        return CHECKS[check](torch, Call(entry, sample, in_dims, copied=op_db.widened))

    precision = LESS_PRECISE.get(entry.full_name, PRECISE)
    agree(actual, expected, None if is_random else exact, precision)
    return True


def is_refused(check, entry, sample, in_dims):
    """Whether PyTorch's `vmap` refuses the call as well."""
    try:
        CHECKS[check](torch, Call(entry, sample, in_dims, loops=False))
    except RuntimeError:
        return True
    return False


def is_accepted(entry, check, dtype=None) -> bool:
    return any(difference.holds(entry, check, dtype) for difference in ACCEPTED)


def samples_of(entry, dtype, check):
    """The samples of a check, with their places among all of them."""
    if check in SLOPES and not has_slopes(check, entry, dtype):
        return []
    if check == "vmap second" and any(word in entry.full_name for word in RANDOM):
        return []  # its samples set the seed inside, which a second derivative refuses
    torch.manual_seed(SEED)
    every = entry.sample_inputs("cpu", dtype, requires_grad=check in SLOPES)
    every = list(enumerate(itertools.islice(every, 100)))
    return [(place, sample) for place, sample in every if applies(check, entry, sample)]


def dtypes_of(entry, draw):
    names = [name for name in DTYPES if getattr(torch, name) in entry.supported_dtypes("cpu")]
    first = ["float64"] if torch.float64 in entry.supported_dtypes("cpu") else []
    return [getattr(torch, name) for name in first + draw.sample(names, min(1, len(names)))]


def chosen_entries():
    if ENTRIES:
        return [entry for entry in op_db.operators() if entry.full_name in ENTRIES.split(",")]
    return drawn(op_db.operators(), ONE_OF)


CHOSEN = chosen_entries()


@pytest.mark.parametrize("entry", CHOSEN, ids=lambda entry: entry.full_name)
@pytest.mark.filterwarnings("ignore")
def test_entry(entry):
    draw = random.Random(f"{SEED} {entry.full_name}")
    for dtype, check in itertools.product(dtypes_of(entry, draw), CHECKS):
        if is_accepted(entry, check, dtype):
            continue
        samples = samples_of(entry, dtype, check)
        for place, sample in draw.sample(samples, min(SAMPLES, len(samples))):
            try:
                if compare(check, entry, sample, in_dims_of(entry, draw)):
                    checks.count(f"op_db: {check}")
            except Exception as error:
                error.add_note(f"--seed {SEED}: {check}, {dtype}, sample {place}")
                raise


def in_dims_of(entry, draw):
    """A number in IN_DIMS, for `as_strided` one in which the examples are dense in memory."""
    return 0 if entry.name.startswith("as_strided") else draw.randrange(len(IN_DIMS))


def outcome(function, arguments):
    first, args, kwargs = arguments
    try:
        function(first, *args, **kwargs)
    except Exception as error:
        return {kind.__name__ for kind in type(error).__mro__}, type(error).__name__
    return None


@pytest.mark.parametrize("entry", CHOSEN, ids=lambda entry: entry.full_name)
@pytest.mark.filterwarnings("ignore")
def test_wrong_calls(entry):
    if entry.error_inputs_func is None or is_accepted(entry, "errors"):
        return
    draw, every = random.Random(SEED), list(entry.error_inputs("cpu"))
    for wrong in draw.sample(every, min(WRONG_CALLS, len(every))):
        if compare_errors(entry, wrong):
            checks.count("op_db: wrong calls")


def compare_errors(entry, wrong):
    """Whether both libraries take a call, after which its outcomes are compared."""
    try:
        call = Call(entry, wrong.sample_input)
    except (NotImplementedError, ValueError):
        return False  # sparse, on another device, or of more dimensions than NumPy has
    expected = outcome(call.functions[torch], call.arguments[torch])
    actual = outcome(call.functions[jaxgrad], call.arguments[jaxgrad])
    text = f"--seed {SEED}: {wrong.sample_input} {expected} {actual}"
    assert (actual is None) == (expected is None), text
    assert expected is None or expected[1] in actual[0], text
    return True


def differs(function, *arguments):
    """Whether a comparison fails."""
    try:
        function(*arguments)
    except AssertionError:
        return True
    return False


def is_needed(difference, entry):
    """Whether a call of an entry shows a difference that is accepted."""
    if "errors" in difference.checks:
        wrong = [*entry.error_inputs("cpu")]
        return any(differs(compare_errors, entry, call) for call in wrong)
    return any(
        differs(compare, check, entry, sample)
        for check, dtype in itertools.product(CHECKS, entry.supported_dtypes("cpu"))
        if difference.holds(entry, check, dtype) and check not in FORMS
        for _, sample in samples_of(entry, dtype, check)
    )


@pytest.mark.parametrize("entry", CHOSEN, ids=lambda entry: entry.full_name)
@pytest.mark.filterwarnings("ignore")
def test_accepted_differences_exist(entry):
    for difference in ACCEPTED:
        if entry.full_name in difference.entries.split():
            text = f"--seed {SEED}: remove it from ACCEPTED: {difference.reason}"
            assert is_needed(difference, entry), text
            checks.count("op_db: accepted differences")
