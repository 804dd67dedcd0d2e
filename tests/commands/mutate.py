"""Damages the formulas of derivatives.yaml one by one: the checks of the samples must notice.

python tests/commands/mutate.py [--sample N] [--only add] [--jobs 2]

A sign is flipped, a factor or a conjugation dropped, two operands or arguments swapped. Each
damaged formula takes the place of the real one in the shipped operators, and the samples that
evaluate it, or the tests in TESTED, are checked until one fails. Every survivor is printed, and the
exit status is then 1. All 722 formulas take about half an hour on two cores.
"""

import argparse
import ast
import copy
import io
import itertools
import multiprocessing
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import xla_settings  # isort: skip  # noqa: F401  before anything imports JAX

import jax
import pytest
from helpers import derivatives, recorded
from helpers.recorded import SAMPLES

from jaxgrad import ops
from jaxgrad.core import bounded_cache, template_store
from jaxgrad.core.primitive import Primitive
from jaxgrad.table import Formula

TESTS = Path(__file__).resolve().parents[1]
SEED = 1
PRODUCTS = ast.Mult, ast.MatMult, ast.Div

# Functions whose arguments may be exchanged.
COMMUTATIVE = {"add", "mul", "maybe_multiply", "maximum", "minimum", "eq", "ne", "logical_and"}

# Damaged formulas that mean the same, by label and text, and why.
EITHER_ORDER = "a transposition names two dimensions, in either order"
ORDER_LAST = "polygamma takes its order first or last"
SYMMETRIC = "the function is symmetric in the two"
MEAN = "both limits count by their mean"
CELL = "input_gates,hidden_gates,cx,input_bias,hidden_bias"
EQUIVALENT: dict[tuple[str, str], str] = {
    ("digamma.self", "grad * polygamma(self, 1)"): ORDER_LAST,
    ("polygamma.self", "grad * polygamma(self, n + 1)"): ORDER_LAST,
    ("polygamma.self_first.self", "grad * polygamma(self, n + 1)"): ORDER_LAST,
    ("copysign.Tensor.self", "copysign_backward(grad, result, self)"): SYMMETRIC,
    ("copysign.Scalar.self", "copysign_backward(grad, result, self)"): SYMMETRIC,
    ("transpose.int.self", "transpose(grad, dim1, dim0)"): EITHER_ORDER,
    ("swapaxes.self", "transpose(grad, axis1, axis0)"): EITHER_ORDER,
    ("_rrelu.self", "rrelu_with_noise_backward(grad, self, noise, upper, lower, training)"): MEAN,
    (
        "rrelu_with_noise_backward.grad_output",
        "rrelu_with_noise_backward(grad, self, noise, upper, lower, training, self_is_result)",
    ): MEAN,
    (
        "rrelu_with_noise_backward.result",
        "rrelu_with_noise_backward(grad_output_t, self_p, noise, upper, lower, training, "
        "self_is_result)",
    ): MEAN,
    (
        "huber_loss_backward.self",
        "huber_loss_double_backward(grad * grad_output, target, self, reduction, delta)",
    ): SYMMETRIC,
    (
        "huber_loss_backward.target",
        "-huber_loss_double_backward(grad * grad_output, target, self, reduction, delta)",
    ): SYMMETRIC,
    (
        "cholesky_solve.input2",
        "cholesky_solve_factor_backward(result, cholesky_solve(grad, input2, upper), "
        "as_triangle(input2, upper), upper)",
    ): SYMMETRIC,
    (
        f"_thnn_fused_lstm_cell.{CELL}",
        "fused_lstm_cell_backward(grads, hidden_gates, input_gates, cx, input_bias, hidden_bias)",
    ): SYMMETRIC,
    (
        f"_thnn_fused_lstm_cell.{CELL}",
        "fused_lstm_cell_backward(grads, input_gates, hidden_gates, cx, hidden_bias, input_bias)",
    ): SYMMETRIC,
    (
        "_softmax_backward_data.output",
        "softmax_double_backward(grad_output, grad, dim, output)",
    ): "the two gradients are treated alike",
}

# Formulas without samples that notice each damage, by label, and the tests of them: PyTorch lacks
# the derivative or the name of the operator, or the values depend on a key.
TESTED = {
    "_dirichlet_sample.self": "rules/test_random.py",
    "_gamma_sample.self": "rules/test_random.py",
    "_standard_gamma_grad.self": "rules/test_random.py",
    "_standard_gamma_grad.output": "rules/test_random.py",
    "positive.self": "frontend/test_identities.py",
    "_neg_view.self": "frontend/test_memory_methods.py",
    "_rounded_view.self": "frontend/test_half_complex.py",
    "igamma.self": "rules/test_gamma.py",
    "igammac.self": "rules/test_gamma.py",
    "_igamma_moment.self,other": "rules/test_gamma.py",
    "heaviside.values": "rules/test_numbers.py",
    "_unique_elements.self": "rules/test_sorting.py",
    "_unique_values.self": "rules/test_sorting.py",
    "_unique_slices.self": "rules/test_sorting.py",
    "_unique_runs.self": "rules/test_sorting.py",
    "_resize.self": "functions/test_shape.py",
    "ldexp.Tensor.other": "rules/test_numbers.py",
    "_grouped_mm.self": "rules/test_matmul.py",
    "_grouped_mm.mat2": "rules/test_matmul.py",
    "fake_quantize_per_tensor_affine.tensor_qparams.self": "rules/test_quantization.py",
    "fake_quantize_per_channel_affine.self": "rules/test_quantization.py",
    "_trilinear.i1": "rules/test_matmul.py",
    "_trilinear.i2": "rules/test_matmul.py",
    "_trilinear.i3": "rules/test_matmul.py",
    "scatter.reduce.self,src": "rules/test_scatter_reduce.py",
    "scatter.value_reduce.self": "rules/test_scatter_reduce.py",
    "soft_margin_loss.target": "rules/test_loss.py",
    "geqrf.self": "rules/test_factorization.py",
    "linalg_ldl_factor_ex.self": "rules/test_factorization.py",
    "_embedding_renorm.self": "rules/test_embedding.py",
    # third derivatives of singular values alone read it
    "_svd_of_values.S": "rules/test_eigenvalues.py",
    "eig.self": "rules/test_eigenvalues.py",
    "eig.values": "rules/test_eigenvalues.py",
    "eig.vectors": "rules/test_eigenvalues.py",
    "_native_batch_norm_legit_functional.running_mean,running_var": "rules/test_normalization.py",
    "native_batch_norm_backward.running_mean,running_var": "rules/test_normalization.py",
}


# damage


def replaced(tree, position, node):
    """A copy of `tree` with `node` in the place of the node at `position` of `ast.walk`."""
    duplicate = copy.deepcopy(tree)
    target = next(itertools.islice(ast.walk(duplicate), position, None))

    class Replace(ast.NodeTransformer):
        def visit(self, candidate):
            return copy.deepcopy(node) if candidate is target else self.generic_visit(candidate)

    return Replace().visit(duplicate)


def operands(call):
    """The arguments of a call, the tensor whose method it is among them."""
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*receiver, *call.args]


def function_of(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id


def called(call, arguments):
    return ast.Call(ast.Name(function_of(call)), arguments, call.keywords)


def damaged_call(call):
    name, arguments = function_of(call), operands(call)
    if name == "conj":
        yield arguments[0]
    for i, j in itertools.combinations(range(len(arguments)), 2):
        near = j == i + 1 or len(arguments) == 3
        if near and name not in COMMUTATIVE and ast.dump(arguments[i]) != ast.dump(arguments[j]):
            swapped = list(arguments)
            swapped[i], swapped[j] = arguments[j], arguments[i]
            yield called(call, swapped)


def damaged_operation(node):
    if isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield ast.BinOp(node.left, other, node.right)
    if isinstance(node.op, PRODUCTS):
        yield node.left
    if isinstance(node.op, ast.Mult | ast.MatMult):
        yield node.right
    if isinstance(node.op, ast.Div | ast.MatMult | ast.Pow):
        yield ast.BinOp(node.right, node.op, node.left)


def damaged_node(node):
    """The replacements of a node."""
    if isinstance(node, ast.BinOp):
        yield from damaged_operation(node)
    elif isinstance(node, ast.Call):
        yield from damaged_call(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def negated(tree, parts):
    """The whole formula with another sign; of a tuple, each part separately."""
    if isinstance(tree, ast.Tuple):
        for position in range(len(tree.elts)):
            changed = [*tree.elts]
            changed[position] = ast.UnaryOp(ast.USub(), changed[position])
            yield ast.Tuple(changed, ast.Load())
    elif parts == 1:
        yield ast.UnaryOp(ast.USub(), tree)


def mutants(text, parts=1):
    """Formulas that are `text` with one damage each; `parts`: how many results it has.

    >>> sorted(mutants("grad * self.cos().conj()"))
    ['-(grad * self.cos().conj())', 'grad', 'grad * self.cos()', 'self.cos().conj()']
    """
    tree = ast.parse(text, mode="eval").body
    trees = list(negated(tree, parts))
    for position, node in enumerate(ast.walk(tree)):
        trees.extend(replaced(tree, position, other) for other in damaged_node(node))
    texts = (ast.unparse(ast.fix_missing_locations(mutant)) for mutant in trees)
    return sorted(set(texts) - {ast.unparse(tree)})


# formulas in their places


@dataclass(frozen=True)
class Target:
    """A formula where it stands: `formulas` are the results of one tuple, or a single one."""

    operator: str
    primitive: Primitive
    formulas: tuple[Formula, ...]
    parts: int

    @property
    def formula(self):
        return self.formulas[0]

    @property
    def is_gradient(self):
        return any(value is self.formula for _, value in self.primitive.rule.gradients)

    def damage(self, text):
        """Replace the formula by `text` in everything that is not traced yet."""
        for formula in self.formulas:
            other = replace(formula, text=text)
            names = tuple(sorted(formula.names))
            self.primitive.compiled[formula] = other.compile(names, self.primitive.scope)

    def repair(self):
        for formula in self.formulas:
            self.primitive.compiled.pop(formula, None)


@cache
def targets(only):
    """Every gradient and tangent formula of the shipped table, or of one operator."""
    collected = []
    for name in ops.library.table.names if only is None else [only]:
        for primitive in ops.library.find(name).primitives:
            collected.extend(Target(name, primitive, *pair) for pair in formulas_of(primitive.rule))
    return collected


def formulas_of(rule):
    """The formulas of a rule, those of one tuple together, and how many results each has."""
    gradients = [((v,), len(names)) for names, v in rule.gradients if isinstance(v, Formula)]
    tangents = {}
    for value in rule.tangents.values():
        if isinstance(value, Formula):
            tangents.setdefault((value.line, value.column), []).append(value)
    return gradients + [(tuple(values), len(values)) for values in tangents.values()]


def forget_traces():
    """Make every operator trace again at its next call."""
    template_store.is_on = False  # the files are those of the formulas on disk
    for store in bounded_cache.living(bounded_cache.memory.caches):
        store.clear()
    for name in ops.library.names:
        # operators that were never called need not be read from the table
        for primitive in vars(ops.library.find(name)).get("primitives", ()):
            primitive.alive.clear()


# samples


@cache
def problem(index, field):
    return recorded.problem(*SAMPLES[index], field)


@contextmanager
def noticing():
    """The formulas that are evaluated within."""
    seen, original = set(), Primitive.evaluate_formula

    def evaluate_formula(primitive, formula, scope):
        seen.add(formula)
        return original(primitive, formula, scope)

    Primitive.evaluate_formula = evaluate_formula
    try:
        yield seen
    finally:
        Primitive.evaluate_formula = original


@cache
def evaluated_by(index, order):
    """The formulas that the first or second derivatives of a sample evaluate."""
    problems = [problem(index, field) for field in SAMPLES[index][1].fields]
    forget_traces()  # what is traced already evaluates no formula
    with noticing() as seen, suppress(Exception):  # is_sound says which sample fails
        for sample_problem in filter(derivatives.has_derivative, problems):
            lower(sample_problem, order)
    return seen


def lower(problem, order):
    """Trace the derivatives and compile nothing."""
    inputs, outputs = problem.directions(2)
    if order == 1:
        function, directions = derivatives.first_derivatives, (inputs, outputs)
    else:
        function, directions = derivatives.second_derivatives, (*inputs, outputs[0])
    with jax.enable_x64(True):
        jax.jit(lambda *a: function(problem, *a)).lower(problem.point, *directions)


def samples_of(target):
    """The samples that evaluate a formula, those of operators of its name, or that use it, first;
    by their second derivatives where the first ones of no such sample do.
    """
    name, formulas = target.operator.strip("_"), set(target.formulas)
    users = [other.operator for other in targets(None) if target.operator in other.formula.calls]
    names = {known.strip("_") for known in (name, *users)}

    def distance(index):
        operator = SAMPLES[index][1].name.rpartition(".")[2]
        is_near = any(operator in known or known in operator for known in names)
        return 0 if operator == name else 1 if is_near else 2

    ordered = sorted(range(len(SAMPLES)), key=distance)
    near = [index for index in ordered if distance(index) < 2]
    for indices in (near, ordered[len(near) :]):
        for order in (1, 2):
            is_evaluated = False
            for index in indices:
                if formulas & evaluated_by(index, order):
                    is_evaluated = True
                    yield index
            if is_evaluated:
                break


# witnesses of damages


@dataclass(frozen=True)
class Check:
    """A check of derivatives.py on a sample."""

    check: Callable
    index: int
    field: str

    def fails(self):
        findings = derivatives.Findings()
        try:
            self.check(problem(self.index, self.field), findings)
        except Exception:  # a damaged formula may raise any error
            return True
        return bool(findings)

    def __str__(self):
        return f"{self.check.__name__} of {SAMPLES[self.index][1]}"


@dataclass(frozen=True)
class Tests:
    """A file of tests."""

    path: str

    def fails(self):
        with redirect_stdout(io.StringIO()):
            return pytest.main(["-x", "-p", "no:cacheprovider", str(TESTS / self.path)]) != 0

    def __str__(self):
        return self.path


def witnesses(target):
    """What may notice the damages of a formula, the fastest of each sample first."""
    if target.formula.label in TESTED:
        yield Tests(TESTED[target.formula.label])
        return
    for index in samples_of(target):
        sample = SAMPLES[index][1]
        checks = [derivatives.answers] if target.is_gradient else []
        checks.append(derivatives.first_order)
        if not sample.kink:
            checks.append(derivatives.second_order)
        # complex numbers notice what real ones do, and a missing conjugation
        yield from (Check(c, index, field) for field in reversed(sample.fields) for c in checks)


@cache
def is_sound(witness):
    """Whether a witness is content without damage, as it must be to count."""
    sound = not witness.fails()
    if not sound:
        print(f"{witness} fails although nothing is damaged", file=sys.stderr)
    return sound


def is_noticed(target, text):
    for witness in witnesses(target):
        forget_traces()
        target.damage(text)
        try:
            failed = witness.fails()
        finally:
            target.repair()
            forget_traces()
        if failed and is_sound(witness):
            return True
    return False


def survivors(only, position):
    """How many damages of a formula were tried, and a line for each that no check noticed."""
    warnings.simplefilter("ignore")  # warnings that operators give as PyTorch does
    target = targets(only)[position]
    formula, lines, tried = target.formula, [], 0
    where = f"{formula.path}:{formula.line}:{formula.column}: {formula.label}"
    if next(witnesses(target), None) is None:
        return 0, [f"{where}: no sample evaluates it"]
    for text in mutants(formula.text, target.parts):
        if (formula.label, text) in EQUIVALENT:
            continue
        tried += 1
        if not is_noticed(target, text):
            lines.append(f"{where}: nobody noticed {text!r}")
    jax.clear_caches()  # otherwise compiled programs fill the memory
    return tried, lines


def chosen(arguments):
    known = targets(arguments.only)
    positions = range(len(known))
    if arguments.sample is None or arguments.sample >= len(positions):
        return positions
    # drawn by label, not by place: a new formula takes the place of one other at most
    draws = [random.Random(f"{SEED} {target.formula.label}").random() for target in known]
    return sorted(sorted(positions, key=draws.__getitem__)[: arguments.sample])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, metavar="N", help="only N formulas, always the same")
    parser.add_argument("--only", metavar="OPERATOR", help="only the formulas of this operator")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes")
    arguments = parser.parse_args()
    started, positions, total, lines = time.monotonic(), chosen(arguments), 0, []
    tried = partial(survivors, arguments.only)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, context) as pool:
        for done, (number, messages) in enumerate(pool.map(tried, positions), 1):
            total += number
            lines += messages
            print(*messages, sep="\n", end="\n" if messages else "", flush=True)
            if sys.stderr.isatty():
                print(f"{done} of {len(positions)} formulas", end="\r", file=sys.stderr)
    seconds = time.monotonic() - started
    print(f"{total} damages of {len(positions)} formulas, {len(lines)} survivors, {seconds:.0f} s")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
