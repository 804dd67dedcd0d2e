"""Windows of signals: errors and edges."""

from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.hann_window(-1)", RuntimeError, "requires non-negative window_length"),
    ("torch.hann_window(4, dtype=torch.int64)", RuntimeError, "expects floating point dtypes"),
    ("torch.signal.windows.hann(-1)", ValueError, "requires non-negative window length"),
    (
        "torch.signal.windows.hann(4, dtype=torch.float16)",
        ValueError,
        "expects float32 or float64 dtypes",
    ),
    ("torch.signal.windows.general_cosine(4, a=[])", ValueError, "cannot be empty"),
    ("torch.signal.windows.general_cosine(4, a=3)", TypeError, "must be a list/tuple"),
    ("torch.signal.windows.exponential(4, tau=0)", ValueError, "Tau must be positive"),
    ("torch.signal.windows.exponential(4, center=1)", ValueError, "Center must be None"),
    ("torch.signal.windows.gaussian(4, std=0)", ValueError, "deviation must be positive"),
    ("torch.signal.windows.kaiser(4, beta=-1)", ValueError, "beta must be non-negative"),
]

ANSWERS = [
    ("torch.hann_window(0)", "float32", []),
    ("torch.kaiser_window(1, dtype=torch.float64)", "float64", [1.0]),
    ("torch.signal.windows.gaussian(1, sym=False)", "float32", [1.0]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)
