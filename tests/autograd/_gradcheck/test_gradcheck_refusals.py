"""What gradcheck warns of and refuses, and how often it calls the rules of a Function."""

import warnings

import pytest
from helpers.as_torch import as_torch, error, leaf, warned

import jaxgrad


def vector(torch, *values):
    return leaf(torch, *(values or (0.5, 2.0)), dtype=torch.float64)


def new_function(torch, **rules):
    members = {name: staticmethod(rule) for name, rule in rules.items()}
    return type("Rule", (torch.autograd.Function,), members)


# ---- functions whose outputs depend on the values


@as_torch
def test_outputs_whose_shape_or_dtype_depends_on_values(torch):
    def shape(x):
        return torch.cat([x, x]) if torch.all(x >= 1) else x

    def dtype(x):
        return x.to(torch.float32) if torch.all(x >= 1) else x

    x, check, told = torch.ones(1, dtype=torch.float64), torch.autograd.gradcheck, []
    x.requires_grad_()
    for function, words in (
        (shape, "return outputs with the same shape when inputs are perturbed"),
        (dtype, "return outputs with the same dtype when inputs are perturbed"),
    ):
        for options in ({}, {"raise_exception": False}, {"fast_mode": True}):

            def run(function=function, options=options):
                return check(function, x, **options)

            told.append(error(run, words=words))
    return told


def test_the_number_of_outputs_depends_on_values():
    x = vector(jaxgrad, 1.0)
    with pytest.raises(AssertionError, match=r"the same number when inputs are perturbed on index"):
        jaxgrad.autograd.gradcheck(lambda x: (x, x) if x >= 1 else x, x)


# ---- undefined gradients


def refuses(torch):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    return new_function(
        torch, forward=forward, backward=lambda ctx, gradient: gradient_times_two(gradient)
    )


def gradient_times_two(gradient):
    if gradient is None:
        raise RuntimeError("the gradient is undefined")
    return gradient * 2


@as_torch("""
    warned([UserWarning(
             'Backwards compatibility: New undefined gradient support checking feature is '
             'enabled by default, but it may break existing callers of this function. If this '
             'is true for you, you can call this function with "check_undefined_grad=False" to '
             'disable the feature')],
           False)
    warned([], True)
""")
def test_the_warning_of_the_check_for_undefined_gradients(torch):
    x, rule = vector(torch), refuses(torch)
    told = []
    for options in ({"raise_exception": False}, {"check_undefined_grad": False}):

        def run(options=options):
            return torch.autograd.gradcheck(rule.apply, x, **options)

        report = warned(run)
        for entry in report["warnings"]:
            entry["words"] = "New undefined gradient support checking feature is enabled by default"
        told.append(report)
    return told


def test_the_warning_does_not_take_the_place_of_the_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="Expected backward function to handle undefined"):
            jaxgrad.autograd.gradcheck(refuses(jaxgrad).apply, vector(jaxgrad))


# ---- batches


@as_torch
def test_random_numbers_in_batched_checks(torch):
    def double(ctx, direction):
        torch.randn_like(direction)
        return direction * 2

    def forward(ctx, x):
        return x * 2

    words = "vmap: We do not yet support calling random operations inside of vmap"
    rule, x = new_function(torch, forward=forward, vjp=double, jvp=double), vector(torch)
    check = torch.autograd.gradcheck
    return (
        check(rule.apply, x, check_forward_ad=True),
        error(
            lambda: check(rule.apply, x, check_forward_ad=True, check_batched_forward_grad=True),
            words=words,
        ),
        error(lambda: check(rule.apply, x, check_batched_grad=True), words=words),
        check(rule.apply, x, check_batched_grad=True, raise_exception=False),
    )


@as_torch("""
    True
    True
    AssertionError('Setting check_batched_forward_grad=True requires check_forward_ad to be True')
""")
def test_batched_forward_mode(torch):
    x, check = vector(torch), torch.autograd.gradcheck
    options = {"check_forward_ad": True, "check_backward_ad": False}
    options |= {"check_undefined_grad": False, "check_batched_forward_grad": True}
    return (
        check(lambda a, b: (a.clone(), a + 1), (x, 1), **options),
        check(lambda a, c: a.clone(), (x, x.detach().clone().requires_grad_()), **options),
        error(lambda: check(lambda a: a * 2, x, check_batched_forward_grad=True)),
    )


def test_batched_forward_mode_names_its_option():
    def reads(ctx, t):
        t.sum().item()
        return t * 2

    rule = new_function(jaxgrad, forward=lambda ctx, x: x * 2, jvp=reads)
    with pytest.raises(RuntimeError, match="pass `check_batched_forward_grad=False`"):
        jaxgrad.autograd.gradcheck(
            rule.apply,
            vector(jaxgrad),
            check_forward_ad=True,
            check_backward_ad=False,
            check_undefined_grad=False,
            check_batched_forward_grad=True,
        )


# ---- how often


@as_torch("""
    2
    6
    8
    12
    1
    2
    4
    5
""")
def test_how_often_the_rules_for_forward_mode_run(torch):
    counts = []
    for second in (True, False):
        for undefined, batched in ((False, False), (True, False), (False, True), (True, True)):
            count = [0]

            def jvp(ctx, first, second, count=count):
                count[0] += 1
                return first, second

            rule = new_function(torch, forward=lambda ctx, x, y: (x.clone(), y.clone()), jvp=jvp)
            y = torch.tensor([2.0], dtype=torch.float64, requires_grad=second)
            torch.autograd.gradcheck(
                rule.apply,
                (torch.tensor([1.0], dtype=torch.float64, requires_grad=True), y),
                check_forward_ad=True,
                check_backward_ad=False,
                check_undefined_grad=undefined,
                check_batched_forward_grad=batched,
            )
            counts.append(count[0])
    return counts


def test_a_tangent_of_zeros_gives_zeros():  # the only input, so that none is left undefined
    def affine(ctx, t):
        return t * 2 if t.any() else t + 1e-3

    rule = new_function(jaxgrad, forward=lambda ctx, x: x * 2, jvp=affine)
    with pytest.raises(RuntimeError, match="Mismatch in tangent values for output with index: 0"):
        jaxgrad.autograd.gradcheck(
            rule.apply, vector(jaxgrad), check_forward_ad=True, check_backward_ad=False
        )


@as_torch("""
    RuntimeError('atol must be greater than or equal to zero, but got -1')
    RuntimeError('rtol must be greater than or equal to zero, but got -1')
    RuntimeError('rtol must be greater than or equal to zero, but got -1')
""")
def test_negative_tolerances(torch):
    x = vector(torch, 1.0, 2.0)
    check = torch.autograd.gradcheck
    return [
        error(lambda: check(torch.sin, (x,), atol=-1.0, raise_exception=False)),
        error(lambda: check(torch.sin, (x,), rtol=-1.0)),
        error(lambda: torch.autograd.gradgradcheck(torch.sin, (x,), rtol=-1.0)),
    ]


# ---- less than double precision

NO_WORD_OF_OPERATORS = "Every operator is right"


def squared(factor=2, name="Mine"):
    """A Function for x * x, whose derivative is right for factor 2."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * factor * x.conj()

    rules = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (jaxgrad.autograd.Function,), rules).apply


def said(function, inputs, check=jaxgrad.autograd.gradcheck, **options):
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="ismatch") as e:
        warnings.simplefilter("ignore")
        check(function, inputs, **options)
    return str(e.value)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_a_mismatch_in_less_than_double_precision(dtype, fast_mode):
    dtype = getattr(jaxgrad, dtype)
    wide = jaxgrad.complex128 if dtype.is_complex else jaxgrad.float64
    x = jaxgrad.tensor([1.3, 2.7], dtype=dtype, requires_grad=True)
    told = said(squared(), x, fast_mode=fast_mode)
    assert f"Input 0 has dtype {dtype}" in told and f"Pass inputs of dtype {wide}" in told
    assert "cannot be expected to agree within atol=1e-05 and rtol=0.001" in told
    assert "eps=1e-06" in told and NO_WORD_OF_OPERATORS not in told
    assert jaxgrad.autograd.gradcheck(squared(), x.detach().to(wide).requires_grad_())


@pytest.mark.slow
def test_the_input_in_less_than_double_precision_is_named():
    x, y = vector(jaxgrad), jaxgrad.tensor([1.3, 2.7], requires_grad=True)
    for check in (jaxgrad.autograd.gradcheck, jaxgrad.autograd.gradgradcheck):
        told = said(lambda x, y: squared()(y) ** 2 * x, (x, y), check)
        assert "Input 1 has dtype torch.float32" in told and NO_WORD_OF_OPERATORS not in told


def test_an_output_in_less_than_double_precision():
    told = said(lambda x: squared()(x).float(), vector(jaxgrad))
    assert "Output 0 has dtype torch.float32" in told and NO_WORD_OF_OPERATORS not in told
    assert "double precision throughout" in told


def test_operators_in_less_than_double_precision():
    told = said(lambda x: squared()(x.float().sin()).double(), vector(jaxgrad))
    assert "Sin" in told and "less than double precision" in told
    assert NO_WORD_OF_OPERATORS not in told


def test_a_mistake_beyond_the_rounding_of_float32():
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    coarse = {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}
    with pytest.warns(UserWarning, match="double precision"):
        assert jaxgrad.autograd.gradcheck(squared(), x, **coarse)
    told = said(squared(3), x, **coarse)
    assert "is the numerical one times 1.5" in told and "cannot be expected" not in told
    assert "Input 0 has dtype torch.float32" in told and NO_WORD_OF_OPERATORS not in told
    assert "of dtype torch.float64" in told


NONLINEAR = {
    "absolute value": lambda g: g.abs(),
    "square": lambda g: g * g,
    "clamped": lambda g: g.clamp(-1, 1),
    "without negative elements": lambda g: g.relu(),
}


@pytest.mark.parametrize("name", NONLINEAR)
def test_a_backward_must_be_linear_in_the_gradient(name):
    """The rows for gradients of 1 are right in each of these."""

    class Square(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return NONLINEAR[name](gradient) * 2 * x

    x = jaxgrad.tensor([0.5, -1.5, 2.0], dtype=jaxgrad.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Square\.apply is not linear in the gradient"):
        jaxgrad.autograd.gradcheck(Square.apply, x)
    with pytest.raises(RuntimeError):
        jaxgrad.autograd.gradcheck(Square.apply, x, fast_mode=True)
