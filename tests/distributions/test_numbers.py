"""log_prob, cdf, icdf, entropy and moments of all distributions, with their gradients, and all
divergences, against PyTorch's recorded answers.
"""

import pytest
from helpers.checks import count
from helpers.distribution_cases import CASES, RECORDED, answers, divergence, same

import jaxgrad
from jaxgrad.distributions import kl

# compiling their kernels takes longer than a second
SLOW = {"beta", "continuous_bernoulli", "kumaraswamy", "wishart", "wishart_precision"}
SLOW |= {"wishart_factor", "multinomial", "student", "dirichlet", "lowrank", "fisher", "binomial"}
SLOW_PAIRS = {"Beta Beta", "LowRankMultivariateNormal LowRankMultivariateNormal"}

# what PyTorch raises for, or has wrong: test_edges.py and test_samples.py have it
ONLY_OURS = {
    **dict.fromkeys(["chi2", "gamma", "inverse_gamma"], "cdf by"),
    "kumaraswamy": "mode",
}


def marked(names, slow):
    marks = {name: [pytest.mark.slow] if name in slow else [] for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(CASES, SLOW))
def test_numbers_of_a_distribution(name):
    theirs, ours = RECORDED["answers"][name], answers(jaxgrad, CASES[name])
    more = [key for key in ours if key not in theirs]
    assert theirs.keys() <= ours.keys()
    assert all(key.startswith(ONLY_OURS.get(name, "nothing")) for key in more), more
    for key, recorded in theirs.items():
        same(recorded, ours[key], f"{name}: {key}")
        count("distributions")


@pytest.mark.slow
@pytest.mark.parametrize("pair", marked(RECORDED.get("divergences", ()), SLOW_PAIRS))
def test_divergence_of_a_pair(pair):
    theirs, ours = RECORDED["divergences"][pair], divergence(jaxgrad, *pair.split())
    assert theirs.keys() == ours.keys()
    for key, recorded in theirs.items():
        same(recorded, ours[key], f"{pair}: {key}")
        count("distributions")


def test_all_pairs_of_pytorch_are_registered():
    ours = {f"{p.__name__} {q.__name__}" for p, q in kl._KL_REGISTRY}
    made_of_others = {
        f"{name} {name}" for name in ("ExponentialFamily", "Independent", "TransformedDistribution")
    }
    assert {*RECORDED["divergences"], *made_of_others} == ours - {
        "Wishart Wishart",
        "HalfCauchy HalfCauchy",
    }
