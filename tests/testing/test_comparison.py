"""`torch.testing.assert_close`, with the texts of PyTorch 2.13 that programs match on."""

import numpy as np
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch

close = torch.testing.assert_close


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]), {}),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), {"equal_nan": True}),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), {}),
        (torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1.01, dtype=torch.bfloat16), {}),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), {"check_dtype": False}),
        (1.0, 1, {"check_dtype": False}),
        (1 + 1e-8, 1.0, {}),
        (1j, 1j + 1e-9, {}),
        (None, None, {}),
        ([1, {"a": torch.ones(2)}], (1, {"a": np.ones(2, np.float32)}), {}),
        (torch.zeros(0), torch.zeros(0), {}),
        (float("inf"), float("inf"), {}),
        (torch.tensor([1.0]), torch.tensor([1.4]), {"rtol": 0, "atol": 0.5}),
    ],
)
def test_assert_close_passes(actual, expected, options):
    close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (torch.ones(2), torch.ones(3), r"attribute 'shape' do not match: torch.Size\(\[2\]\) != "),
        (
            torch.ones(2),
            torch.ones(2).double(),
            "'dtype' do not match: torch.float32 != ",
        ),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "Tensor-likes are not equal!"),
        (1.0, 2.0, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0"),
        (1, 2, "Scalars are not equal!"),
        (1, 1.0, r"\(d\)types do not match: <class 'int'> != <class 'float'>."),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, "The keys of the mappings do not match"),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}, r"occurred for item \['a'\]\[1\]"),
        (None, 1, "None mismatch: None is not 1"),
        (float("nan"), float("nan"), "Scalars are not close!"),
        (torch.tensor([float("inf")]), torch.tensor([1.0]), "Greatest absolute difference: inf"),
    ],
)
def test_assert_close_fails(actual, expected, text):
    with pytest.raises(AssertionError, match=text):
        close(actual, expected)


def test_messages_name_the_greatest_differences():
    expected = torch.tensor([[1.0, 10.0], [100.0, 1000.0]])
    with pytest.raises(AssertionError) as told:
        close(expected + torch.tensor([[0.5, 0.0], [0.0, 3.0]]), expected)
    lines = str(told.value).splitlines()
    assert lines[0] == "Tensor-likes are not close!"
    assert lines[2] == "Mismatched elements: 2 / 4 (50.0%)"
    assert lines[3] == "Greatest absolute difference: 3.0 at index (1, 1) (up to 1e-05 allowed)"
    assert lines[4] == "Greatest relative difference: 0.5 at index (0, 0) (up to 1.3e-06 allowed)"


def test_assert_close_with_a_message():
    with pytest.raises(AssertionError, match=r"^mine$"):
        close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^mine: Scalars are not equal!"):
        close(1, 2, msg=lambda text: f"mine: {text}")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="specified or omitted, but got no atol"):
        close(1.0, 1.0, rtol=1e-3)
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        close("a", "a")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@as_torch
def test_assert_allclose(torch):
    close, x = torch.testing.assert_allclose, torch.ones(2)
    for other in (x.double(), [1, 1], x + 5e-5):
        close(x, other)
    return [error(close, x, y, words="Tensor-likes are not close!") for y in (x * 2, x + 2e-4)]


def test_numbers_of_two_types_are_close_if_types_are_not_checked():
    close([1], [1.0], check_dtype=False)


@as_torch
def test_texts_of_layouts_and_dtypes(torch):
    close, eye = torch.testing.assert_close, torch.eye(2)
    bytes_ = [torch.tensor(x, dtype=torch.uint8) for x in ([1, 255], [200, 3])]
    halves = [torch.tensor(x).half() for x in ([1.0, 2.0], [1.0, 2.3])]
    eights = [torch.tensor([1.0, x]).to(torch.float8_e4m3fn) for x in (2, 3)]
    quantized = [torch.quantize_per_tensor(eye * x, 0.1, 0, torch.quint8) for x in (1, 2)]
    pairs = [bytes_, halves, eights, quantized, [eye.to_sparse(), 2 * eye.to_sparse()]]
    pairs += [[eye.to_sparse(), torch.ones(2, 2).to_sparse()]]
    pairs += [[eye.to_sparse_csr(), eye.flip(0).to_sparse_csr()], [eye, eye.to_sparse()]]
    pairs += [[torch.tensor([2**53]), torch.tensor([2**53 + 1])], [True, False], [None, 1]]
    return [error(close, *pair, words="o") for pair in pairs]


@as_torch
def test_pairs_that_programs_derive(torch):
    module = torch.testing._comparison

    class Text(module.Pair):
        def __init__(self, actual, expected, **options):
            self._check_inputs_isinstance(actual, expected, cls=str)
            super().__init__(actual, expected, **options)

        def compare(self):
            if self.actual != self.expected:
                self._fail(AssertionError, f"{self.actual} differs from {self.expected}")

    class Loose(module.NumberPair):
        def __init__(self, actual, expected, *, least=0.0, **options):
            super().__init__(actual, expected, **options)
            self.atol = max(self.atol, least)

    kinds = (module.NonePair, Text, Loose, module.TensorLikePair, module.ObjectPair)

    def texts(actual, expected, **options):
        errors = module.not_close_error_metas(actual, expected, pair_types=kinds, **options)
        return [str(mistake.to_error()) for mistake in errors]

    return [
        texts([1.0, "a", {"k": 2.0}], [1.5, "b", {"k": 2.0}]),
        texts([1.0, "a"], [1.5, "a"], least=0.6),
        texts((1 + 1j, None, slice(1)), (1 + 1j, None, slice(2))),
        [str(x) for x in (repr(module.NumberPair(1, 2.0)), repr(module.NonePair(None, None)))],
        [list(module.default_tolerances(*kinds)) for kinds in ((torch.half,), (torch.int8,))],
        error(texts, [1], [1, 2], words="The length of the sequences mismatch"),
        error(module.NumberPair, "a", 1, words=""),
        error(module.default_tolerances, 1, words="Expected a torch.Tensor or a torch.dtype"),
    ]
