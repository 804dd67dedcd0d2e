"""Results of several tensors. PyTorch prints and pickles them so."""

import pickle

import pytest

import jaxgrad

X = jaxgrad.tensor([[1.0, 3.0], [4.0, 2.0]])

PRINTED = [
    (lambda: X.max(0), "max(\nvalues=tensor([4., 3.]),\nindices=tensor([1, 0]))"),
    (lambda: jaxgrad.aminmax(X), "aminmax(\nmin=tensor(1.),\nmax=tensor(4.))"),
    (
        lambda: jaxgrad.linalg.slogdet(X),
        "linalg_slogdet(\nsign=tensor(-1.),\nlogabsdet=tensor(2.3026))",
    ),
    (
        lambda: jaxgrad.histogram(X, 2),
        "histogram(\nhist=tensor([2., 2.]),\nbin_edges=tensor([1.0000, 2.5000, 4.0000]))",
    ),
]


@pytest.mark.parametrize(("call", "text"), PRINTED)
def test_the_text_of_a_result(call, text):
    assert repr(call()) == "torch.return_types." + text


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.max(0),
        lambda: jaxgrad.histogram(X, 2),
        lambda: jaxgrad.histogramdd(X, [2, 2]),
        lambda: jaxgrad.linalg.lu_factor(X),
        lambda: jaxgrad.linalg.solve_ex(X, X),
        lambda: jaxgrad.linalg.ldl_factor(X),
    ],
)
def test_results_are_pickled(call):
    result = call()
    loaded = pickle.loads(pickle.dumps(result))
    assert type(loaded) is type(result) is getattr(jaxgrad.return_types, type(result).__name__)
    assert jaxgrad.equal(loaded[0], result[0])


def test_numbers_of_fields():
    kind = type(jaxgrad.ones(2).max(0))
    assert (kind.n_fields, kind.n_sequence_fields, kind.n_unnamed_fields) == (2, 2, 0)
