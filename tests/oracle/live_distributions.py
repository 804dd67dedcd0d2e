"""Distributions and divergences against the installed PyTorch, with new parameters in each run.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import random
import warnings

import pytest
import torch
from helpers import checks
from helpers import distribution_cases as cases
from oracle.seed import SEED

import jaxgrad

MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril", "cov_factor")


@pytest.fixture(autouse=True)
def in_double_precision(monkeypatch):
    precise = cases.precise_bessel(torch)
    monkeypatch.setattr(torch.distributions.von_mises, "_log_modified_bessel_fn", precise)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def moved(name, value, generator):
    """A parameter near the given one that is as valid."""
    factor = 1 + generator.uniform(-0.2, 0.2)
    if name in MATRICES:
        return scaled(value, lambda: factor)
    if name == "total_count" and isinstance(value, list):
        return value
    if name == "probs":
        return scaled(value, lambda: 1 - generator.uniform(0, 0.2))
    return scaled(value, lambda: 1 + generator.uniform(-0.2, 0.2))


def scaled(value, factor):
    if isinstance(value, list):
        return [scaled(entry, factor) for entry in value]
    return value * factor()


def new_case(case, generator):
    parameters = {key: moved(key, value, generator) for key, value in case.parameters.items()}
    return case._replace(parameters=parameters, options={**case.options, "validate_args": False})


@pytest.mark.parametrize("name", cases.CASES)
def test_distribution(name):
    case = new_case(cases.CASES[name], random.Random(f"{SEED} {name}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Wishart distributions with few degrees of freedom
        theirs, ours = cases.answers(torch, case), cases.answers(jaxgrad, case)
    for key in theirs.keys() - cases.wrong_keys(name):
        cases.same(theirs[key], ours[key], f"SEED={SEED} {name} {key} {case.parameters}", 1e-7)
        checks.count("distributions")


PAIRS = sorted(
    (p.__name__, q.__name__)
    for p, q in torch.distributions.kl._KL_REGISTRY
    if p.__name__ in cases.DIVERGENCES and q.__name__ in cases.DIVERGENCES
)


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_divergence(pair, monkeypatch):
    generator = random.Random(f"{SEED} {pair}")
    known = {
        kind: tuple(
            {key: moved(key, value, generator) for key, value in parameters.items()}
            for parameters in cases.DIVERGENCES[kind]
        )
        for kind in pair
    }
    monkeypatch.setattr(cases, "DIVERGENCES", known)
    theirs, ours = cases.divergence(torch, *pair), cases.divergence(jaxgrad, *pair)
    cases.same(theirs["kl"], ours["kl"], f"SEED={SEED} {pair} {known}", 1e-7)
    infinite = float("inf") in theirs["kl"]
    for key in () if infinite else theirs:  # where it is infinite, PyTorch's gradients are NaN
        cases.same(theirs[key], ours.get(key), f"SEED={SEED} {pair} {key} {known}", 1e-7)
    checks.count("distributions")
