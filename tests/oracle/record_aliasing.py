"""Run the programs of tests/storage/matrix.py with PyTorch and record their results.

make record PARTS=aliasing

Each kind of view and write has a list in the order of matrix.programs. A program is recorded as its
error, if the write itself raises, or as two numbers: the weighted sums of its values and of its
gradients (matrix.digest). A third entry stands where PyTorch's first answer was no use:

saved    it refuses because a saved value was overwritten: recorded with clones of what is used
silent   `.data`: it uses the overwritten values in the gradient, without an error: likewise
sibling  it refuses to read one of several views: recorded with the same view made alone
refused  it raises an internal error: the numbers are those of matrix.interpret
"""

import warnings

import jax
import numpy
import torch
from helpers.answers import beside, save
from storage import matrix, views, writes

# What PyTorch says where it reads or differentiates, and how the program is then recorded.
NOTES = {
    "has been modified by an inplace operation": "saved",
    "its base or another view of its base has been modified": "sibling",
    "returned an invalid gradient": "refused",
    "more than one element of the written-to tensor": "refused",
}

# The words of an error of the write that jaxgrad's must have, too.
OVERLAPS = "more than one element of the written-to tensor refers to a single memory location"
WORDS = (
    "functions with out=... arguments don't support automatic differentiation",
    OVERLAPS,
    "is a view and is being modified inplace",
)


def as_numpy(tensor):
    plain = tensor.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(plain) if plain.is_complex() else plain).numpy()


def leaves(program):
    return (
        matrix.tensor(torch, program.leaf(), program.view.is_complex),
        matrix.tensor(torch, program.other(), program.other_is_complex),
    )


def answer(program, make_view, fresh):
    results = matrix.run(torch, program, *leaves(program), make_view, fresh)
    return [as_numpy(tensor) for tensor in results]


def refusal(program):
    """The error of the write itself: its type and words; None where there is none.

    What PyTorch says to be deprecated, of expanded tensors, is that error already.
    """
    leaf, other = leaves(program)
    target = matrix.tensors(torch, leaf, program.view.call)[program.target]
    with warnings.catch_warnings(record=True) as warned:
        try:
            program.write.call(torch, target, other)
        except RuntimeError as error:
            return [type(error).__name__, next(words for words in WORDS if words in str(error))]
    return ["RuntimeError", OVERLAPS] if warned else None


def recorded(program):
    refused = refusal(program)
    if refused:
        return refused
    note = ""
    try:
        results = answer(program, program.view.call, fresh=lambda tensor: tensor)
    except RuntimeError as error:
        note = next(note for words, note in NOTES.items() if words in str(error))
    expected = matrix.interpret(program)
    if note == "refused":
        results = expected
    elif note:
        results = answer(program, program.view.pair, torch.clone)
    if str(program.view) == "data" and not note and not same(results, expected):
        note, results = "silent", answer(program, program.view.call, torch.clone)
    assert same(results, expected), program
    return [float(f"{number:.9g}") for number in matrix.digest(results)] + [note] * bool(note)


def same(results, expected):
    pairs = zip(results, expected, strict=True)
    return all(
        one.shape == other.shape and numpy.allclose(one, other, rtol=1e-12, atol=1e-13)
        for one, other in pairs
    )


def main():
    torch.set_warn_always(True)
    by_case = {}
    with jax.enable_x64(True):
        for view in views.VIEWS:
            for write in writes.ALL:
                answers = [recorded(program) for program in matrix.programs(view, write)]
                by_case.update({f"{view}-{write}": answers} if answers else {})
    save(beside("storage/test_matrix.py"), by_case, 1e-8, 1e-8)


if __name__ == "__main__":
    main()
