"""`opcheck`: does an operator do what its schema and its rules say?"""

from __future__ import annotations

import numpy as np

from ..autograd import grad
from ..compiled.jit import jit
from ..tape.tensor import Tensor
from ._call import Call, run_fake, tensors_in
from ._custom_op import CustomOpDef
from ._operator import OpOverload, OpOverloadPacket
from ._schema import bind

# PyTorch's tolerances, relative and absolute
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


DEFAULT = (
    *("test_schema", "test_autograd_registration", "test_faketensor"),
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """An operator failed a test of `opcheck`.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::same", mutates_args=())
    ... def same(x: Tensor) -> Tensor:
    ...     return x
    >>> try:
    ...     jaxgrad.library.opcheck(same, (jaxgrad.ones(2),), test_utils="test_schema")
    ... except jaxgrad.library.OpCheckError as error:
    ...     print(str(error).partition(" with")[0])
    opcheck(op, ...): test_schema failed
    """


def opcheck(
    op, args, kwargs=None, *, test_utils=DEFAULT, raise_exception=True, atol=None, rtol=None
) -> dict:
    """Test an operator on sample arguments.

    op: a `CustomOpDef` or an overload; args, kwargs: its arguments, with `requires_grad` set where
        the derivative is to be tested.
    test_utils: the names of the tests to run: `test_schema`, that it writes to no other argument
        than the schema says and returns new tensors; `test_autograd_registration`, that a result
        that requires grad has a derivative; `test_faketensor`, that its fake tells the shapes and
        dtypes; `test_aot_dispatch_static` and `test_aot_dispatch_dynamic`, that results, written
        arguments and gradients are the same under `jaxgrad.jit`. The default leaves out the static
        one, which is the same here, since shapes are static.
    raise_exception: whether to raise at the first failure.
    atol, rtol: tolerances in place of those by dtype.

    Returns "SUCCESS" or the exception by the name of the test. Raises OpCheckError for a failure,
    ValueError for another `op` or an unknown test. It does not test whether gradients are right:
    `autograd.gradcheck` does.

    >>> from jaxgrad import Tensor
    >>> @jaxgrad.library.custom_op("docs::negated", mutates_args=())
    ... def negated(x: Tensor) -> Tensor:
    ...     return -x
    >>> @negated.register_fake
    ... def _(x):
    ...     return jaxgrad.empty_like(x)
    >>> jaxgrad.library.opcheck(negated, (jaxgrad.ones(2),), test_utils="test_faketensor")
    {'test_faketensor': 'SUCCESS'}
    """
    operator = _operator_of(op)
    names = _tests_of(test_utils)
    results = {}
    for name in names:
        try:
            TESTS[name](operator, args, kwargs or {}, (rtol, atol))
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _operator_of(op) -> OpOverload:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket) and len(op.overloads()) == 1:
        return getattr(op, op.overloads()[0])
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be a CustomOpDef or an overload, e.g. "
            f"torch.ops.mylib.sin.default, got {type(op).__name__}"
        )
    return op


def _tests_of(test_utils) -> tuple[str, ...]:
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= TESTS.keys():
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of "
            f"{tuple(TESTS)} but it was not"
        )
    return names


def _copied(value):
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    if not isinstance(value, Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def _copies(operator, args, kwargs) -> list:
    """The bound arguments, with copies in place of the tensors."""
    return [_copied(value) for value in bind(operator._schema, args, kwargs)]


def _run(operator, bound):
    """Call with bound arguments; returns the results as a list."""
    positional, keywords = Call(operator, bound).split(bound)
    results = operator(*positional, **keywords)
    return list(results) if isinstance(results, tuple) else [results]


def _test_schema(operator, args, kwargs, tolerance):
    bound = _copies(operator, args, kwargs)
    before = [(a, t, _numbers(t)) for a, t in _arguments(operator, bound)]
    _run(operator, bound)
    for argument, tensor, numbers in before:
        is_same = np.array_equal(numbers, _numbers(tensor), equal_nan=numbers.dtype.kind in "fc")
        if not argument.type.written and not is_same:
            raise RuntimeError(
                f"Argument {argument.name} is not defined as mutable but was mutated"
            )


def _arguments(operator, bound):
    pairs = zip(operator._schema.arguments, bound, strict=True)
    return [(a, tensor) for a, value in pairs for tensor in tensors_in([value])]


def _test_autograd_registration(operator, args, kwargs, tolerance):
    if operator._is_custom_op or operator._whole or operator._backward:
        return
    results = _run(operator, _copies(operator, args, kwargs))
    if any(tensor.requires_grad for tensor in tensors_in(results)):
        raise AssertionError(
            f"{operator.name()}: at least one output of this operator has requires_grad=True but "
            "the operator does not have an autograd kernel defined: use register_autograd, or "
            "register the function as CompositeImplicitAutograd"
        )


def _test_faketensor(operator, args, kwargs, tolerance):
    if operator._whole is not None:
        return
    if operator._fake is None:
        raise RuntimeError(
            f"There was no fake impl registered for {operator.name()}. Please use register_fake to "
            "add an fake impl."
        )
    bound = _copies(operator, args, kwargs)
    fake = run_fake(operator, Call(operator, bound), bound)
    real = _run(operator, bound)
    fakes, reals = tensors_in(fake), tensors_in(real)
    if len(fakes) != len(reals):
        raise AssertionError(
            f"{operator}: the fake returned {len(fakes)} tensors, the kernel {len(reals)}"
        )
    for declared, tensor in zip(fakes, reals, strict=True):
        for what, a, b in (
            ("Shapes", tensor.shape, declared.shape),
            ("Dtypes", tensor.dtype, declared.dtype),
        ):
            if a != b:
                raise AssertionError(
                    f"When comparing the output of {operator} on FakeTensor and concrete Tensors, "
                    f"found mismatched tensor metadata: {what} {a} and {b} are not equal!"
                )


def _test_compiled(operator, args, kwargs, tolerance):
    if operator._fake is None and operator._whole is None:
        raise RuntimeError(
            f"There was no fake impl registered for {operator.name()}. Please use register_fake to "
            "add an fake impl."
        )
    eager = _outcome(operator, _copies(operator, args, kwargs))
    bound = _copies(operator, args, kwargs)
    compiled = jit(lambda *bound: _outcome(operator, list(bound)))(*bound)
    texts = (
        ("Outputs", "output", "its kernel"),
        ("Gradients", "gradients", "its backward"),
        ("Written arguments", "arguments", "its kernel"),
    )
    for (what, noun, run), first, second in zip(texts, eager, compiled, strict=True):
        if not _is_same(first, second, tolerance):
            raise AssertionError(
                f"{what} of the operator {operator} are different uncompiled and under "
                f"jaxgrad.jit, where it has incorrect {noun}: {run} may depend on something else "
                "than its arguments"
            )


def _outcome(operator, bound):
    """The results, the gradients of their sum, and the arguments that were written to."""
    results = tensors_in(_run(operator, bound))
    moving = [t for _, t in _arguments(operator, bound) if t.requires_grad]
    outputs = [result for result in results if result.requires_grad]
    gradients = ()
    if moving and outputs:
        total = sum(
            result.abs().sum() if result.is_complex() else result.sum() for result in outputs
        )
        gradients = grad(total, moving, allow_unused=True)
    written = [t.detach() for a, t in _arguments(operator, bound) if a.type.written]
    return [result.detach() for result in results], list(gradients), written


def _numbers(tensor):
    numbers = np.asarray(tensor.detach().numpy())
    return numbers.astype("float32") if numbers.dtype.name == "bfloat16" else numbers


def _is_same(first, second, tolerance) -> bool:
    return len(first) == len(second) and all(
        _is_close(a, b, *tolerance) for a, b in zip(first, second, strict=True)
    )


def _is_close(first, second, rtol, atol) -> bool:
    if first is None or second is None:
        return first is second
    if first.shape != second.shape or first.dtype is not second.dtype:
        return False
    name = str(first.dtype).rpartition(".")[2]
    relative, absolute = _TOLERANCES.get(name, (0.0, 0.0))
    relative = relative if rtol is None else rtol
    absolute = absolute if atol is None else atol
    a, b = _numbers(first), _numbers(second)
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    return np.allclose(a, b, rtol=relative, atol=absolute, equal_nan=True)


TESTS = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_aot_dispatch_static": _test_compiled,
    "test_aot_dispatch_dynamic": _test_compiled,
}
