"""Random programs of nested transforms, in PyTorch and jaxgrad: `vmap` along random dimensions,
`grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, Functions with rules for `vmap`, compiled
functions, views and writes in place, inside of one another.

A program is text, which runs in both libraries. Values and gradients of first and second order are
compared, of the program alone, compiled, and under `vmap` and forward mode. Where PyTorch refuses a
program, it counts as not compared; most must be.
"""

import random
import sys
import types
import warnings

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

PROGRAMS = 24
CHECKS_OF_A_PROGRAM = 2

FUNCTIONS = '''
class Cube(T.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad

    @staticmethod
    def vmap(info, in_dims, x):
        return Cube.apply(x), in_dims[0]


class Quotient(T.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x / (2 + x * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2 - x * x) / (2 + x * x) ** 2


def fit(tensor, shape):
    """Elements in another shape: each depends on all elements of the tensor."""
    flat, size = tensor.reshape(-1), T.Size(shape).numel()
    repeated = flat.repeat(-(-size // flat.numel()))[:size]
    return (repeated + 0.1 * flat.sum()).reshape(shape)
'''
POINTWISE = (
    *("{}.sin()", "{}.tanh()", "(0.7 * {}).exp()", "T.sqrt(1 + {} ** 2)", "Cube.apply({})"),
    *("Quotient.apply({})", "T.where({0} > 0.1, {0} * 2, {0}.sin())", "{0} * {0}.detach()"),
)
OF_A_DIMENSION = (
    *("{}.cumsum(-1)", "{}.softmax(-1)", "{}.flip(0)", "{}.sort(-1).values", "{}.cumprod(0)"),
    *("{0} - {0}.mean(-1, keepdim=True)", "{0}.roll(1, 0)", "{0}.logcumsumexp(-1)"),
)
BINARY = "{} * {}", "{} - 0.5 * {}", "{0} / (2 + {1} * {1})", "T.maximum({}, {})"
WRITES = "mul_({})", "add_({}, alpha=0.5)", "copy_({})", "sin_()", "zero_()", "tanh_().mul_({})"
TRANSFORMS = "vmap", "vmap", "grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "compiled"


def views(name, shape):
    """Views of a tensor as text, with their shapes."""
    pairs = [(f"{name}.unsqueeze(0)", (1, *shape))]
    if shape:
        pairs += [(f"{name}[{shape[0] - 1}]", shape[1:])]
        pairs += [(f"{name}[..., ::2]", (*shape[:-1], (shape[-1] + 1) // 2))]
    if len(shape) > 1:
        pairs += [(f"{name}.mT", (*shape[:-2], shape[-1], shape[-2]))]
        pairs += [(f"{name}.diagonal()", (*shape[2:], min(shape[:2])))]
    return pairs


class Program:
    """A random program: `text`, the shapes of its arguments `x` and `y`.

    In the methods `known` are the tensors that a statement can use, by name and shape, and `lines`
    the text, to which it appends. A statement gives the new tensors.
    """

    def __init__(self, draw):
        self.draw, self.count = draw, 0
        self.shapes = draw.choice([(3,), (2, 3), (3, 3)]), draw.choice([(3,), (2, 3), (2,)])
        lines, known = [], list(zip("xy", self.shapes, strict=True))
        self.body(lines, "    ", known, depth=0, is_scalar=False)
        self.text = "\n".join(["def program(x, y):", "    x, y = x * 1, y * 1", *lines])

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def value(self, known, shape):
        """A known tensor as text, in a shape."""
        name, present = self.draw.choice(known)
        return name if present == shape else f"fit({name}, {shape})"

    def body(self, lines, indent, known, depth, is_scalar):
        """Append statements and the return of a result; gives the shape of that."""
        known = [*known]
        for _ in range(self.draw.randint(1, 3)):
            kinds = [self.operator, self.view, self.write, *[self.transform] * 2 * (depth < 2)]
            known += self.draw.choice(kinds)(lines, indent, known, depth)
        name, shape = known[-1]
        lines.append(f"{indent}return ({name} * {name}.cos()).sum()" if is_scalar else "")
        lines[-1] = lines[-1] or f"{indent}return {name} + 0.1 * {self.value(known, shape)}"
        return () if is_scalar else shape

    def operator(self, lines, indent, known, depth):
        (name, shape), new = self.draw.choice(known), self.name()
        if self.draw.random() < 0.3:
            text = self.draw.choice(BINARY).format(name, self.value(known, shape))
        else:
            text = self.draw.choice((*POINTWISE, *OF_A_DIMENSION * bool(shape))).format(name)
        lines.append(f"{indent}{new} = {text}")
        return [(new, shape)]

    def view(self, lines, indent, known, depth):
        (text, shape), new = self.draw.choice(views(*self.draw.choice(known))), self.name()
        lines.append(f"{indent}{new} = {text}")
        return [(new, shape)]

    def write(self, lines, indent, known, depth):
        (source, shape), new = self.draw.choice(known), self.name()
        start = self.draw.choice(["{}.clone()", "{} * 1", "T.zeros_like({})"])
        part, part_shape = self.draw.choice([(new, shape), *views(new, shape)])
        change = self.draw.choice(WRITES).format(self.value(known, part_shape))
        lines += [f"{indent}{new} = {start.format(source)}", f"{indent}{part}.{change}"]
        return [(new, shape)]

    def transform(self, lines, indent, known, depth):
        kind, new, inner = self.draw.choice(TRANSFORMS), self.name(), self.name()
        arguments = [self.draw.choice(known) for _ in range(2)]
        if kind == "vmap":
            return self.mapped(lines, indent, known, depth, arguments)
        text = ", ".join(name for name, _ in arguments)
        shape = self.function(lines, indent, known, depth, inner, arguments, kind)
        first = arguments[0][1]
        calls = {
            "grad": (f"T.func.grad({inner})({text})", first),
            "compiled": (f"compiled({inner})({text})", shape),
            "jvp": (f"T.func.jvp({inner}, ({text}), ({text}))[1]", shape),
            "vjp": (f"T.func.vjp({inner}, {text})[1]({self.value(known, shape)})[0]", first),
        }
        columns = f"fit(T.func.{kind}({inner})({text}), {first})", first
        call, shape = calls.get(kind, columns)
        lines.append(f"{indent}{new} = {call}")
        return [(new, shape)]

    def function(self, lines, indent, known, depth, name, arguments, kind):
        """Append the definition of a function of these arguments; gives the shape of its result."""
        inside = [(self.name(), shape) for _, shape in arguments]
        lines.append(f"{indent}def {name}({', '.join(name for name, _ in inside)}):")
        around = self.draw.sample(known, 1) if self.draw.random() < 0.3 else []
        is_scalar = kind in ("grad", "hessian")
        return self.body(lines, indent + "    ", [*around, *inside], depth + 1, is_scalar)

    def mapped(self, lines, indent, known, depth, arguments):
        (first, shape), (second, other) = arguments
        if not shape:
            return self.operator(lines, indent, known, depth)
        dim, new, inner = self.draw.randrange(len(shape)), self.name(), self.name()
        size = shape[dim]
        same = [place for place, extent in enumerate(other) if extent == size]
        dims = dim, self.draw.choice([*same, None])
        ones = [
            (name, of if place is None else (*of[:place], *of[place + 1 :]))
            for (name, of), place in zip(arguments, dims, strict=True)
        ]
        result = self.function(lines, indent, known, depth, inner, ones, "vmap")
        chunk = self.draw.choice([None, None, 2])
        options = f"in_dims={dims}, chunk_size={chunk}"
        lines.append(f"{indent}{new} = T.vmap({inner}, {options})({first}, {second})")
        return [(new, (size, *result))]


def loaded(library, text):
    """The program as a function of a module."""
    module = types.ModuleType(f"program_{library.__name__}")
    sys.modules[module.__name__] = module
    module.T = library
    module.compiled = library.compile if library is jaxgrad else lambda function: function
    exec(compile(FUNCTIONS + text, "<program>", "exec"), vars(module))
    return module.program


def weighted(library, results):
    weights = library.arange(results.numel(), dtype=library.float64).cos()
    return (results.reshape(-1) * weights).sum()


def gradients(library, program, x, y, create_graph=False):
    loss = weighted(library, program(x, y))
    options = {"create_graph": create_graph, "materialize_grads": True, "allow_unused": True}
    return library.autograd.grad(loss + 0 * x.sum(), (x, y), **options)


def second(library, program, x, y):
    firsts = gradients(library, program, x, y, create_graph=True)
    loss = sum(weighted(library, gradient) for gradient in firsts) + 0 * x.sum()
    return library.autograd.grad(loss, (x, y), materialize_grads=True, allow_unused=True)


def tangents(library, program, x, y):
    x, y = x.detach(), y.detach()
    return library.func.jvp(program, (x, y), (x.cos(), y.sin()))


def mapped_gradients(library, program, x, y):
    loss = library.func.grad(lambda x, y: weighted(library, program(x, y)), argnums=(0, 1))
    x = x.detach()
    return library.vmap(loss, (0, None))(library.stack([x, x.cos()]), y.detach())


def compiled(check):
    def run(library, program, x, y):
        return check(library, program if library is torch else jaxgrad.compile(program), x, y)

    return run


CHECKS = {
    "gradients": gradients,
    "second": second,
    "tangents": tangents,
    "mapped gradients": mapped_gradients,
    "compiled gradients": compiled(gradients),
    "compiled second": compiled(second),
}
MEMORY = "shares its memory with another tensor that it reads"  # docs/conventions.md


def outcome(library, text, arrays, check):
    """The results as arrays, or the error."""
    program = loaded(library, text)
    leaves = [library.from_numpy(array.copy()).requires_grad_() for array in arrays]
    try:
        results = CHECKS[check](library, program, *leaves)
        return [result.detach().numpy() for result in results]
    except Exception as error:  # PyTorch also fails in assertions
        return error


@pytest.fixture(scope="module")
def compared():
    """The numbers of the programs that PyTorch computes."""
    numbers = []
    yield numbers
    assert len(numbers) > PROGRAMS / 2


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_programs(number, compared):
    draw = random.Random(f"{SEED} {number}")
    program, numbers = Program(draw), numpy.random.default_rng(draw.randrange(2**32))
    arrays = [numbers.uniform(-1, 1, shape) for shape in program.shapes]
    for check in draw.sample(sorted(CHECKS), CHECKS_OF_A_PROGRAM):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = outcome(torch, program.text, arrays, check)
            if isinstance(expected, Exception):
                continue
            actual = outcome(jaxgrad, program.text, arrays, check)
        if isinstance(actual, RuntimeError) and MEMORY in str(actual):
            continue
        compared.append(number)
        assert not isinstance(actual, Exception), (SEED, check, program.text, actual)
        for value, wanted in zip(actual, expected, strict=True):
            scale = numpy.nanmax(abs(wanted), initial=1.0)
            numpy.testing.assert_allclose(
                value, wanted, rtol=1e-7, atol=1e-9 * scale, err_msg=f"{check}\n{program.text}"
            )
