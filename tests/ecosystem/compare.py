"""Whether the results of two runs of a program are equal, and what differs most if not."""

from collections import defaultdict

import numpy as np

# An array of small numbers, such as a gradient that is zero but for rounding, is compared on the
# scale of the largest of its kind: outputs with outputs, gradients with gradients.
SHARE_OF_LARGEST = 1e-3


def differences(results, answers, tolerance):
    """What differs, the worst first: name and sentence."""
    missing = [(name, "is missing") for name in answers.keys() - results.keys()]
    surplus = [(name, "is not among PyTorch's") for name in results.keys() - answers.keys()]
    scales = largest_of_kinds(answers)
    errors = {
        name: error_of(results[name], answers[name], scales[kind_of(name)])
        for name in answers.keys() & results.keys()
    }
    wrong = sorted((name for name in errors if not errors[name] <= tolerance), key=errors.get)
    return missing + surplus + [(name, f"differs by {errors[name]:.1e}") for name in wrong[::-1]]


def kind_of(name):
    return name.partition(".")[0]


def largest_of_kinds(answers):
    """The largest finite number among the arrays of one kind."""
    largest = defaultdict(float)
    for name, values in answers.items():
        if is_inexact(values):
            finite = np.abs(values[np.isfinite(values)])
            largest[kind_of(name)] = max(largest[kind_of(name)], float(finite.max(initial=0)))
    return largest


def is_inexact(values):
    return np.issubdtype(values.dtype, np.inexact)


def error_of(values, answer, scale):
    """The largest difference beside the largest number; infinite for other shapes or integers."""
    if values.shape != answer.shape or is_inexact(values) != is_inexact(answer):
        return np.inf
    if not is_inexact(answer):
        return 0.0 if np.array_equal(values, answer) else np.inf
    is_finite = np.isfinite(answer)
    if not np.array_equal(values[~is_finite], answer[~is_finite], equal_nan=True):
        return np.inf
    difference = np.abs(values[is_finite] - answer[is_finite]).max(initial=0)
    unit = max(np.abs(answer[is_finite]).max(initial=0), SHARE_OF_LARGEST * scale)
    return float(difference / unit) if difference else 0.0
