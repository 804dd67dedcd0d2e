"""Sobol sequences, against PyTorch's."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


@as_torch
def test_points_of_sobol_sequences(torch):
    engine = torch.quasirandom.SobolEngine(3)
    first, wide = engine.draw(5), engine.draw(3, dtype=torch.float64)
    ahead = engine.fast_forward(2).draw(2)
    many = torch.quasirandom.SobolEngine(50).draw(100, dtype=torch.float64)
    again = engine.reset().draw_base2(2)
    out = torch.empty(0)
    engine.draw(2, out=out)
    return [
        first,
        wide,
        ahead,
        engine.num_generated,
        repr(engine),
        many[77, :5],
        many.sum(),
        again,
        out,
        engine.draw(0).shape == (0, 3),
        repr(torch.quasirandom.SobolEngine(2, scramble=True, seed=3)),
        error(lambda: engine.draw_base2(3), words="require n to be a power of 2"),
        error(lambda: torch.quasirandom.SobolEngine(0), words="Supported range of dimension"),
        error(lambda: torch.quasirandom.SobolEngine(21202), words="Supported range of dimension"),
    ]


@pytest.mark.slow
def test_shuffled_sequences_repeat_and_are_even():
    def points(seed):
        return jaxgrad.quasirandom.SobolEngine(2, scramble=True, seed=seed).draw(256)

    first = points(3)
    assert (first == points(3)).all() and (first != points(4)).any()
    # a sixteenth of the points in each sixteenth of the square
    cells = (first * 4).int()
    counts = jaxgrad.bincount(cells[:, 0] * 4 + cells[:, 1])
    assert counts.tolist() == [16] * 16
    jaxgrad.manual_seed(0)
    one = jaxgrad.quasirandom.SobolEngine(2, scramble=True)
    drawn = one.draw(4)
    assert (one.reset().draw(4) == drawn).all()
    jaxgrad.manual_seed(0)
    assert (jaxgrad.quasirandom.SobolEngine(2, scramble=True).draw(4) == drawn).all()
    with pytest.raises(ValueError, match="not 30000"):
        jaxgrad.quasirandom.SobolEngine(30000)
