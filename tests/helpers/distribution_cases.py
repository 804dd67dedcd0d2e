"""Distributions with parameters and values, for jaxgrad and for PyTorch: what the tests in
tests/distributions, record_distributions.py and `make oracle` evaluate.
"""

import functools
import math
import warnings
from typing import NamedTuple

import jaxgrad
from helpers.answers import beside, load
from helpers.as_torch import as_torch

RECORDING = beside("distributions/test_numbers.py")
RECORDED = load(RECORDING)


class Case(NamedTuple):
    """A distribution. parameters: become float64 tensors; options: other arguments; value: for
    log_prob and cdf; of_ints: whether it is int64.
    """

    kind: str
    parameters: dict
    value: list
    options: dict = {}  # noqa: RUF012
    of_ints: bool = False


PROBABILITY = [0.01, 0.3, 0.8]
LOC_SCALE = {"loc": [0.5, -1.0, 2.0], "scale": [1.0, 0.3, 5.0]}
REAL, POSITIVE, UNIT = [0.1, -1.5, 4.0], [0.1, 0.9, 6.0], [0.1, 0.55, 0.97]
CONCENTRATIONS = {"concentration1": [0.5, 2.0, 30.0], "concentration0": [0.7, 1.5, 40.0]}
MATRIX = [[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]
FACTOR = [[[1.5, 0.0], [0.5, 0.8]], [[0.7, 0.0], [-0.3, 2.0]]]
COLUMNS = [[[1.0], [0.5]], [[-0.4], [2.0]]]
VECTORS = [[0.3, -0.2], [1.0, 2.0]]
PROBS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
LOGITS = [[0.2, -1.3, 0.5], [3.0, 0.0, -2.0]]
SIMPLEX = [[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]]
ONE_HOT = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
MATRICES = [[[3.0, 0.4], [0.4, 2.0]], [[1.5, -0.6], [-0.6, 4.0]]]

CASES = {
    "bernoulli": Case("Bernoulli", {"probs": [0.2, 0.5, 0.9]}, [0.0, 1.0, 1.0]),
    "bernoulli_logits": Case("Bernoulli", {"logits": [-3.0, 0.0, 40.0]}, [0.0, 1.0, 0.0]),
    "beta": Case("Beta", CONCENTRATIONS, [0.1, 0.55, 0.07]),
    "binomial": Case("Binomial", {"probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 5.0], {"total_count": 5}),
    "binomial_logits": Case(
        "Binomial", {"logits": [-3.0, 0.0, 4.0]}, [0.0, 3.0, 5.0], {"total_count": 5}
    ),
    "categorical": Case("Categorical", {"probs": PROBS}, [2, 0], of_ints=True),
    "categorical_logits": Case("Categorical", {"logits": LOGITS}, [2, 0], of_ints=True),
    "cauchy": Case("Cauchy", LOC_SCALE, REAL),
    "chi2": Case("Chi2", {"df": [0.5, 2.0, 30.0]}, POSITIVE),
    "continuous_bernoulli": Case("ContinuousBernoulli", {"probs": [0.2, 0.7, 0.99]}, UNIT),
    "continuous_bernoulli_logits": Case("ContinuousBernoulli", {"logits": [-3.0, 0.2, 5.0]}, UNIT),
    "dirichlet": Case("Dirichlet", {"concentration": [[0.5, 2.0, 3.0], [1.5, 1.0, 9.0]]}, SIMPLEX),
    "exponential": Case("Exponential", {"rate": [0.5, 2.0, 30.0]}, POSITIVE),
    "fisher": Case("FisherSnedecor", {"df1": [3.0, 0.5, 30.0], "df2": [4.5, 5.0, 7.0]}, POSITIVE),
    "gamma": Case("Gamma", {"concentration": [0.5, 2.0, 30.0], "rate": [0.3, 1.0, 4.0]}, POSITIVE),
    "generalized_pareto": Case(
        "GeneralizedPareto",
        {"loc": [0.0, 1.0, -1.0], "scale": [1.0, 2.0, 0.5], "concentration": [0.3, -0.4, 0.45]},
        [0.4, 3.0, 7.0],
    ),
    "geometric": Case("Geometric", {"probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 7.0]),
    "geometric_logits": Case("Geometric", {"logits": [-3.0, 0.0, 4.0]}, [0.0, 3.0, 7.0]),
    "gumbel": Case("Gumbel", LOC_SCALE, REAL),
    "half_cauchy": Case("HalfCauchy", {"scale": [0.5, 2.0, 30.0]}, POSITIVE),
    "half_normal": Case("HalfNormal", {"scale": [0.5, 2.0, 30.0]}, POSITIVE),
    "inverse_gamma": Case(
        "InverseGamma", {"concentration": [2.1, 2.5, 30.0], "rate": [0.3, 1.0, 4.0]}, POSITIVE
    ),
    "kumaraswamy": Case("Kumaraswamy", {**CONCENTRATIONS, "concentration1": [0.5, 2.0, 3.0]}, UNIT),
    "laplace": Case("Laplace", LOC_SCALE, REAL),
    "lkj": Case(
        "LKJCholesky",
        {"concentration": [0.5, 3.0]},
        [[[1, 0, 0], [0.6, 0.8, 0], [0, 0.28, 0.96]], [[1, 0, 0], [0, 1, 0], [0.8, 0, 0.6]]],
        {"dim": 3},
    ),
    "log_normal": Case("LogNormal", {"loc": [0.5, -1.0, 2.0], "scale": [1.0, 0.3, 2.0]}, POSITIVE),
    "logistic_normal": Case("LogisticNormal", {"loc": VECTORS, "scale": [0.5, 2.0]}, SIMPLEX),
    "lowrank": Case(
        "LowRankMultivariateNormal",
        {"loc": VECTORS, "cov_factor": COLUMNS, "cov_diag": [0.5, 2.0]},
        [[0.0, 1.0], [-1.0, 2.0]],
    ),
    "multinomial": Case(
        "Multinomial", {"probs": PROBS}, [[1.0, 1.0, 2.0], [0.0, 0.0, 4.0]], {"total_count": 4}
    ),
    "multinomial_logits": Case(
        "Multinomial", {"logits": LOGITS}, [[1.0, 1.0, 2.0], [0.0, 0.0, 4.0]], {"total_count": 4}
    ),
    "multivariate_normal": Case(
        "MultivariateNormal", {"loc": VECTORS, "covariance_matrix": MATRIX}, VECTORS[::-1]
    ),
    "multivariate_normal_precision": Case(
        "MultivariateNormal", {"loc": VECTORS, "precision_matrix": MATRIX[0]}, VECTORS[::-1]
    ),
    "multivariate_normal_factor": Case(
        "MultivariateNormal", {"loc": VECTORS[0], "scale_tril": FACTOR}, VECTORS[::-1]
    ),
    "negative_binomial": Case(
        "NegativeBinomial",
        {"total_count": [0.5, 3.0, 100.0], "probs": [0.2, 0.5, 0.9]},
        [0.0, 3.0, 700.0],
    ),
    "negative_binomial_logits": Case(
        "NegativeBinomial",
        {"total_count": [0.5, 3.0, 100.0], "logits": [-3.0, 0.0, 4.0]},
        [0.0, 3.0, 7.0],
    ),
    "normal": Case("Normal", LOC_SCALE, REAL),
    "one_hot": Case("OneHotCategorical", {"probs": PROBS}, ONE_HOT),
    "one_hot_logits": Case("OneHotCategorical", {"logits": LOGITS}, ONE_HOT),
    "pareto": Case("Pareto", {"scale": [0.05, 0.7, 2.0], "alpha": [2.5, 3.5, 9.0]}, POSITIVE),
    "poisson": Case("Poisson", {"rate": [0.5, 2.0, 30.0]}, [0.0, 3.0, 20.0]),
    "relaxed_bernoulli": Case(
        "RelaxedBernoulli", {"temperature": 0.7, "probs": [0.2, 0.5, 0.9]}, UNIT
    ),
    "relaxed_bernoulli_logits": Case(
        "RelaxedBernoulli", {"temperature": 2.0, "logits": [-3.0, 0.0, 4.0]}, UNIT
    ),
    "relaxed_one_hot": Case(
        "RelaxedOneHotCategorical", {"temperature": 0.7, "probs": PROBS}, SIMPLEX
    ),
    "relaxed_one_hot_logits": Case(
        "RelaxedOneHotCategorical", {"temperature": 2.0, "logits": LOGITS}, SIMPLEX
    ),
    "straight_through": Case("OneHotCategoricalStraightThrough", {"probs": PROBS}, ONE_HOT),
    "student": Case("StudentT", {"df": [2.1, 2.5, 30.0], **LOC_SCALE}, REAL),
    "von_mises": Case(
        "VonMises", {"loc": [0.5, -1.0, 2.0], "concentration": [0.3, 2.0, 3.0]}, REAL
    ),
    "weibull": Case(
        "Weibull", {"scale": [0.5, 2.0, 30.0], "concentration": [1.2, 1.5, 3.0]}, POSITIVE
    ),
    "wishart": Case("Wishart", {"df": [2.5, 4.0], "covariance_matrix": MATRIX}, MATRICES),
    "wishart_precision": Case("Wishart", {"df": 3.0, "precision_matrix": MATRIX}, MATRICES),
    "wishart_factor": Case("Wishart", {"df": [3.0, 9.0], "scale_tril": FACTOR[0]}, MATRICES),
    "uniform": Case(
        "Uniform", {"low": [0.0, -1.0, 2.0], "high": [1.0, 3.0, 2.5]}, [0.1, 0.5, 2.25]
    ),
}

METHODS = ("log_prob", "cdf", "icdf", "entropy", "mean", "variance", "stddev", "mode")
WITHOUT_GRADIENT = ("mean", "variance", "stddev", "mode")


def leaves(lib, parameters):
    """The parameters as float64 tensors that require grad."""
    return {
        name: lib.tensor(value, dtype=lib.float64, requires_grad=True)
        for name, value in parameters.items()
    }


def make(lib, case, parameters):
    if "scale_tril" in parameters:  # the other triangle is not read
        parameters = parameters | {"scale_tril": parameters["scale_tril"].tril()}
    return getattr(lib.distributions, case.kind)(**case.options, **parameters)


def value_of(lib, case, requires_grad=False):
    if case.of_ints:
        return lib.tensor(case.value)
    return lib.tensor(case.value, dtype=lib.float64, requires_grad=requires_grad)


def result(distribution, method, value=None, probability=None):
    """What a method gives, None if there is none."""
    arguments = {"log_prob": (value,), "cdf": (value,), "icdf": (probability,)}.get(method, ())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `stddev` of PyTorch of some NaN
            member = getattr(distribution, method)
            return member(*arguments) if callable(member) else member
    except NotImplementedError:
        return None


def compiled(lib, function):
    """The function, compiled if it is jaxgrad's."""
    return lib.jit(function) if lib is jaxgrad else function


def weights_of(lib, tensor):
    return (lib.arange(tensor.numel(), dtype=tensor.dtype) * 0.37 + 1).reshape(tensor.shape)


def weighted(lib, tensor):
    """A sum in which each finite element has another weight."""
    finite = lib.where(lib.isfinite(tensor), tensor, lib.zeros_like(tensor))
    return (finite * weights_of(lib, tensor)).sum()


def slopes(lib, output, inputs):
    """The gradients of the weighted sum with respect to inputs by name, without those that are 0.
    None where there is no gradient.
    """
    if not output.requires_grad:
        return {}
    try:
        gradients = lib.autograd.grad(
            weighted(lib, output), list(inputs.values()), retain_graph=True, allow_unused=True
        )
    except NotImplementedError:  # by the order of PyTorch's igamma
        return {}
    pairs = [pair for pair in zip(inputs, gradients, strict=True) if pair[1] is not None]
    return {name: gradient.tolist() for name, gradient in pairs if bool((gradient != 0).any())}


def answers(lib, case):
    """The results of all methods of a case, and their gradients with respect to parameters, value
    and probability.
    """
    parameters = leaves(lib, case.parameters)
    value = value_of(lib, case, requires_grad=True)
    probability = lib.tensor(PROBABILITY, dtype=lib.float64, requires_grad=True)
    inputs = {**parameters, "value": value, "probability": probability}
    inputs = {name: tensor for name, tensor in inputs.items() if tensor.requires_grad}
    results = {}
    for method in METHODS:
        output = result(make(lib, case, parameters), method, value, probability)
        if output is not None:
            results[method] = output.tolist()
            by = {} if method in WITHOUT_GRADIENT else slopes(lib, output, inputs)
            results |= {f"{method} by {name}": slope for name, slope in by.items()}
    return results


def wrong_keys(name):
    """What PyTorch has wrong; the tests compare it with other sources."""
    return {"mode"} if name == "kumaraswamy" else set()


def precise_bessel(torch):
    """The logarithm of modified Bessel functions: PyTorch's own for VonMises has 7 digits."""

    def log_bessel(x, order=0):
        scaled = torch.special.i1e(x) if order else torch.special.i0e(x)
        return scaled.log() + x

    return log_bessel


def same(theirs, ours, where, precision=1e-8):
    """Fails where two nested lists of numbers differ by more than the precision of PyTorch's
    `polygamma`.
    """
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(theirs) == len(ours), f"{where}: {ours} for {theirs}"
        for position, pair in enumerate(zip(theirs, ours, strict=True)):
            same(*pair, f"{where}[{position}]", precision)
        return
    both_nan = theirs != theirs and ours != ours
    close = math.isclose(theirs, ours, rel_tol=precision, abs_tol=precision / 10)
    assert both_nan or close, f"{where}: {ours} for {theirs}"


def rounded(value):
    """A described value without what is rounding of 0."""
    if isinstance(value, dict):
        return {name: rounded(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    return round(value, 12) if isinstance(value, float) and math.isfinite(value) else value


as_recorded = functools.partial(as_torch, precision=1e-9, prepare=rounded, family="distributions")


# ---- divergences: parameters of p and of q, for the pairs of classes that PyTorch has

THREE = {"loc": [0.1, 1.0, 3.0], "scale": [2.0, 0.5, 1.0]}
WEIGHTS = {"probs": [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]}

DIVERGENCES = {
    "Bernoulli": ({"probs": [0.2, 0.5, 0.9]}, {"probs": [0.3, 0.5, 0.1]}),
    "Beta": (
        {"concentration1": [0.5, 2.0, 3.0], "concentration0": [0.7, 1.5, 4.0]},
        {"concentration1": [1.5, 2.0, 0.3], "concentration0": [0.7, 2.5, 4.0]},
    ),
    "Binomial": (
        {"total_count": [3.0, 4.0, 5.0], "probs": [0.2, 0.5, 0.9]},
        {"total_count": [3.0, 2.0, 5.0], "probs": [0.3, 0.5, 0.1]},
    ),
    "Categorical": ({"probs": PROBS[:1]}, WEIGHTS),
    "Cauchy": (LOC_SCALE, THREE),
    "ContinuousBernoulli": ({"probs": [0.2, 0.75, 0.99]}, {"probs": [0.1, 0.8, 0.4]}),
    "Dirichlet": (
        {"concentration": [[0.5, 2.0, 3.0]]},
        {"concentration": [[1.5, 1.0, 9.0], [1.0, 1.0, 1.0]]},
    ),
    "Exponential": ({"rate": [0.5, 2.0, 30.0]}, {"rate": [1.5, 2.0, 3.0]}),
    "Gamma": (
        {"concentration": [0.5, 2.0, 30.0], "rate": [0.3, 1.0, 4.0]},
        {"concentration": [1.5, 2.0, 3.0], "rate": [0.3, 2.0, 1.0]},
    ),
    "Geometric": ({"probs": [0.2, 0.5, 0.9]}, {"probs": [0.3, 0.5, 0.1]}),
    "Gumbel": (LOC_SCALE, THREE),
    "HalfNormal": ({"scale": [1.0, 0.3, 5.0]}, {"scale": [2.0, 0.5, 1.0]}),
    "Laplace": (LOC_SCALE, THREE),
    "LowRankMultivariateNormal": (
        {"loc": VECTORS[0], "cov_factor": COLUMNS, "cov_diag": [0.5, 2.0]},
        {"loc": VECTORS, "cov_factor": MATRIX[0], "cov_diag": [[0.5, 1.0], [1.0, 2.0]]},
    ),
    "MultivariateNormal": (
        {"loc": VECTORS[:1], "scale_tril": FACTOR},
        {"loc": VECTORS, "scale_tril": FACTOR[1]},
    ),
    "Normal": (LOC_SCALE, THREE),
    "OneHotCategorical": ({"probs": PROBS[:1]}, WEIGHTS),
    "Pareto": (
        {"scale": [0.5, 1.5, 2.0], "alpha": [2.5, 4.0, 3.0]},
        {"scale": [0.3, 1.6, 1.0], "alpha": [1.5, 4.0, 3.0]},
    ),
    "Poisson": ({"rate": [0.5, 2.0, 30.0]}, {"rate": [1.5, 2.0, 3.0]}),
    "Uniform": (
        {"low": [0.2, 0.3, 0.4], "high": [0.5, 0.9, 0.7]},
        {"low": [0.1, 0.4, -1.0], "high": [0.8, 1.0, 2.0]},
    ),
}


def divergence(lib, kind_of_p, kind_of_q):
    """The divergence of two classes, with the gradients with respect to all parameters."""
    of_p, of_q = DIVERGENCES[kind_of_p][0], DIVERGENCES[kind_of_q][1]
    p, q = leaves(lib, of_p), leaves(lib, of_q)
    distributions = [make(lib, Case(kind_of_p, {}, []), p), make(lib, Case(kind_of_q, {}, []), q)]
    output = lib.distributions.kl_divergence(*distributions)
    inputs = {f"p.{name}": leaf for name, leaf in p.items()}
    inputs |= {f"q.{name}": leaf for name, leaf in q.items()}
    return {"kl": output.tolist(), **slopes(lib, output, inputs)}
