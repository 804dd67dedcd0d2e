"""Whether the results of two runs of a program are equal, and what differs most if not."""

import zlib
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
        finite = np.abs(values[np.isfinite(values)]) if is_inexact(values) else np.zeros(0)
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


def digests(arrays):
    """What is recorded of arrays: shape, whether inexact, size, and the share of a direction."""
    return {name: digest(name, values) for name, values in sorted(arrays.items())}


def digest(name, values):
    numbers = values.astype(np.complex128).ravel()
    direction = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(numbers.size)
    size, share = np.linalg.norm(numbers), direction @ numbers
    return [*values.shape], bool(is_inexact(values)), size, [share.real, share.imag]


def differences_from_digests(results, recorded, tolerance):
    """What differs from recorded digests: names and sentences."""
    names = results.keys() | recorded.keys()
    return [
        (name, "differs from what is recorded")
        for name in sorted(names)
        if name not in results
        or name not in recorded
        or not is_like(digest(name, results[name]), recorded[name], tolerance)
    ]


def is_like(one, other, tolerance):
    """Whether two digests are those of arrays that are equal to the tolerance."""
    if [*one[:2]] != [*other[:2]]:
        return False
    # integers are equal, but processors round their digests in their own ways
    allowed = tolerance * max(other[2], 1e-7 / tolerance) if one[1] else 1e-12 * max(other[2], 1.0)
    parts = zip([one[2], *one[3]], [other[2], *other[3]], strict=True)
    # a direction has the length of the square root of the number of elements
    room = np.sqrt(max(np.prod(one[0], dtype=float), 1.0))
    return all(abs(a - b) <= allowed * room for a, b in parts)
