"""Wrong calls of PyTorch's operators, drawn from their schemas and samples: which raise, and what.

make oracle ARGUMENTS=wrong_calls     (`--seed N` draws the calls of an earlier run)

PyTorch and jaxgrad agree on all but a few of them, apart from the differences of DIFFERENCES. A
run draws an eighth of the operators; `--all` takes all.
"""

import pytest
from oracle import wrong_calls
from oracle.seed import SEED, drawn

import jaxgrad

PARTS = 8
SHARE = 0.02  # of the calls, which may differ

# what an error of PyTorch says, or what is wrong with a call, and why another outcome is right
# here; docs/conventions.md has the kinds
SAID = {
    "object has no attribute": "an argument of a wrong type raises TypeError",
    "Expected a value of type": "an argument of a wrong type raises TypeError in torch.ops too",
    "Expected a proper Tensor": "an argument of a wrong type raises TypeError in torch.ops too",
    "failed to match any schema": "arguments of wrong types raise TypeError in torch.ops too",
    "Unknown keyword argument": "an unknown argument raises TypeError in torch.ops too",
    "expects float32 or float64 dtypes": "a dtype that is none raises TypeError",
    "not implemented for": "the CPU kernel is missing in PyTorch",
    "INTERNAL ASSERT": "an assertion about PyTorch's memory",
    "MKL FFT error": "a library that is not used here",
    "Overflow when unpacking": "such a number may be too large for a dimension first",
    "too big to convert": "a number of more than 64 bits may be a float",
    "must be str": "a text that is none may be refused as one of the wrong texts",
    "does not require grad": "a call that PyTorch records",
}
CHANGED = {
    "on meta": "tensors with and without data do not meet in a call; more operators work on meta",
    "a leaf": "out= that requires grad would lose its gradient",
    "same": "out= with one tensor for two results would lose one",
    "bool": "a bool is no int",
}
OPERATORS = {
    "__r": "reflected methods are those of Python",
    "grid_sampler": "modes that do not exist raise",
    "native_batch_norm": "statistics of other lengths raise",
}


def is_known(call, answer):
    if any(text in answer for text in SAID):
        return True
    changed = call.change.partition(":")[2]
    return any(changed.endswith(text) for text in CHANGED) or call.operator.startswith(
        tuple(OPERATORS)
    )


def difference(call, answer):
    """How the outcome here differs from that of PyTorch; None if it does not."""
    error = wrong_calls.outcome(jaxgrad, call)
    kinds = {kind.__name__ for kind in type(error).__mro__} if error is not None else {""}
    if answer.partition(":")[0] in kinds or is_known(call, answer):
        return None
    return f"{call.operator} {call.change}: {answer or 'no error'}, here {error!r:.200}"


@pytest.mark.filterwarnings("ignore")  # one that were an error would change the calls
@pytest.mark.parametrize("part", drawn(range(PARTS), PARTS))
def test_the_same_calls_raise(part):
    answers = wrong_calls.outcomes(SEED, part, PARTS)
    differences, compared = [], 0
    for call, answer in zip(wrong_calls.calls(SEED, part, PARTS), answers, strict=True):
        if answer == "crash":
            continue
        try:
            differences.append(difference(call, answer))
        except (AttributeError, NotImplementedError):
            continue  # a function, or a tensor of a sample, that is not here
        compared += 1
    lines = [line for line in differences if line]
    assert compared > 500
    assert len(lines) <= SHARE * compared, "\n".join([f"of {compared}:", *lines])
    print(*lines, sep="\n")
