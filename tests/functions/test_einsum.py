"""einsum: errors, dtypes, and the order of its products."""

import numpy
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad.functions import einsum

REFUSED = [
    ("torch.einsum('', [])", ValueError, "and at least one operand"),
    (
        "torch.einsum('ii', zeros(2, 3))",
        RuntimeError,
        "einsum(): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
    ),
    (
        "torch.einsum('i,i', zeros(2), zeros(3))",
        RuntimeError,
        "subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2",
    ),
    (
        "torch.einsum('i,j', zeros(2))",
        RuntimeError,
        "einsum(): fewer operands were provided than specified in the equation",
    ),
    (
        "torch.einsum('i->j', zeros(2))",
        RuntimeError,
        "output subscript j does not appear in the equation for any input operand",
    ),
    (
        "torch.einsum('..i', zeros(2))",
        RuntimeError,
        "einsum(): found '.' for operand 0 that is not part of any ellipsis",
    ),
    (
        "torch.einsum(zeros(2), [52])",
        ValueError,
        "einsum(): subscript in subscript list is not within the valid range [0, 52)",
    ),
]

ANSWERS = [
    ("torch.einsum('i->', tensor([1, 2], dtype=torch.int8))", "int64", 3),
    ("torch.einsum(',->', tensor(2.0), tensor(3.0))", "float32", 6.0),
    ("torch.einsum('i,j', tensor([1, 2]), tensor([0.5]))", "float32", [[0.5], [1.0]]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_einsum_multiplies_in_the_cheapest_order():
    def order(equation, *shapes):
        return einsum._plan(equation, shapes).order

    wide, narrow = (100, 100), (100,)
    assert order("ab,bc,cd,d->a", wide, wide, wide, narrow) == [(2, 3), (1, 2), (0, 1)]
    assert order("a,ab,bc,cd->d", narrow, wide, wide, wide) == [(0, 1), (0, 2), (0, 1)]
    many = ",".join("abcdefghijk"[n : n + 2] for n in range(10))  # more than are tried at once
    assert len(order(many + "->ak", *[(3, 3)] * 10)) == 9


def test_einsum_of_one_operand_is_a_view():
    x = jaxgrad.zeros(2, 3)
    turned, same = jaxgrad.einsum("ij->ji", x), jaxgrad.einsum("ij->ij", x)
    x[0, 1] = 5.0
    assert turned[1, 0].item() == same[0, 1].item() == 5 and same is not x


def test_einsum_of_many_operands_against_products():
    random = numpy.random.RandomState(0)
    arrays = [random.uniform(-1, 1, (3, 3)) for _ in range(10)]
    terms = ",".join("abcdefghijk"[n : n + 2] for n in range(10))
    product = jaxgrad.einsum(terms + "->ak", *map(jaxgrad.tensor, arrays))
    numpy.testing.assert_allclose(product.numpy(), numpy.linalg.multi_dot(arrays), 1e-12)
