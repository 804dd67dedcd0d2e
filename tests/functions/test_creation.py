"""Factories that are seldom called: errors, dtypes and strides."""

from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.tril_indices(-1, 2)", RuntimeError, "row must be non-negative, got-1"),
    ("torch.tril_indices(2.0, 2)", TypeError, "tril_indices(): argument 'row'"),
    ("torch.triu_indices(2, 2, dtype=torch.int8)", NotImplementedError, "not implemented for 'Ch"),
    ("torch.empty_strided((2, 3), (1,))", RuntimeError, "dimensionality of sizes (2) must match"),
    ("torch.empty_permuted((2, 3), (1, 1))", RuntimeError, "Duplicate dim not allowed"),
    ("torch.empty_permuted((2, 3), (0, 2))", RuntimeError, "Dimension out of range (expected to"),
    ("torch.scalar_tensor('a')", TypeError, "scalar_tensor(): argument 's'"),
    ("torch.frombuffer(b'', dtype=torch.int8)", ValueError, "both buffer length (0) and count (-"),
    ("torch.frombuffer([1], dtype=torch.int8)", ValueError, "does not implement Python buffer"),
]

ANSWERS = [
    ("torch.tril_indices(3, 2, -1)", "int64", [[1, 2, 2], [0, 0, 1]]),
    ("torch.tril_indices(2, 3, 1, dtype=torch.int32)", "int32", [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]),
    ("torch.triu_indices(3, 2, -1)", "int64", [[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]]),
    ("torch.triu_indices(2, 3, 1)", "int64", [[0, 0, 1], [1, 2, 2]]),
    ("torch.triu_indices(2, 2, 5)", "int64", [[], []]),
    ("torch.scalar_tensor(True)", "float32", 1.0),
    ("torch.scalar_tensor(1.5, dtype=torch.int64)", "int64", 1),
    (
        "torch.frombuffer(bytearray(b'12345678'), dtype=torch.int16, count=2, offset=2)",
        "int16",
        [13363, 13877],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_strides_of_empty_tensors():
    for size, stride in (((2, 3), (1, 2)), ((2, 3), (5, 1)), ((2, 3), (0, 1)), ((0, 3), (3, 1))):
        for tensor in (
            jaxgrad.empty_strided(size, stride, requires_grad=True),
            jaxgrad.zeros(1).new_empty_strided(size, stride),
        ):
            assert (tuple(tensor.shape), tensor.stride()) == (size, stride)
    tensor = jaxgrad.empty_permuted((2, 3, 4), (1, 0, 2), dtype=jaxgrad.int32)
    assert tensor.stride() == (4, 8, 1) and tensor.dtype is jaxgrad.int32


def test_efficient_zeros_are_zeros():
    zeros = jaxgrad._efficientzerotensor((2, 3), dtype=jaxgrad.float64)
    assert zeros.tolist() == [[0, 0, 0], [0, 0, 0]] and zeros.dtype == jaxgrad.float64
