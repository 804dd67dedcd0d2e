"""Distributions with parameters and values, for jaxgrad and for PyTorch: what the tests in
tests/distributions, the recording in tests/oracle/distributions.json and `make oracle` evaluate.
"""

import warnings
from typing import NamedTuple


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
CONCENTRATIONS = {"concentration1": [0.5, 2.0, 30.0], "concentration0": [0.7, 1.5, 400.0]}
MATRIX = [[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]
FACTOR = [[[1.5, 0.0], [0.5, 0.8]], [[0.7, 0.0], [-0.3, 2.0]]]
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
    "binomial": Case(
        "Binomial", {"probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 5.0], {"total_count": 5}
    ),
    "binomial_logits": Case(
        "Binomial", {"logits": [-3.0, 0.0, 4.0]}, [0.0, 3.0, 5.0], {"total_count": 5}
    ),
    "categorical": Case("Categorical", {"probs": PROBS}, [2, 0], of_ints=True),
    "categorical_logits": Case("Categorical", {"logits": LOGITS}, [2, 0], of_ints=True),
    "cauchy": Case("Cauchy", LOC_SCALE, REAL),
    "chi2": Case("Chi2", {"df": [0.5, 2.0, 30.0]}, POSITIVE),
    "continuous_bernoulli": Case("ContinuousBernoulli", {"probs": [0.2, 0.6, 0.99]}, UNIT),
    "continuous_bernoulli_logits": Case(
        "ContinuousBernoulli", {"logits": [-3.0, 0.2, 5.0]}, UNIT
    ),
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
    "kumaraswamy": Case("Kumaraswamy", {"concentration1": [0.5, 2.0, 3.0], "concentration0": [0.7, 1.5, 40.0]}, UNIT),
    "laplace": Case("Laplace", LOC_SCALE, REAL),
    "lkj": Case(
        "LKJCholesky",
        {"concentration": [0.5, 3.0]},
        [[[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.28, 0.96]], [[1.0, 0, 0], [0, 1.0, 0], [0.8, 0, 0.6]]],
        {"dim": 3},
    ),
    "log_normal": Case("LogNormal", {"loc": [0.5, -1.0, 2.0], "scale": [1.0, 0.3, 2.0]}, POSITIVE),
    "logistic_normal": Case("LogisticNormal", {"loc": VECTORS, "scale": [0.5, 2.0]}, SIMPLEX),
    "lowrank": Case(
        "LowRankMultivariateNormal",
        {"loc": VECTORS, "cov_factor": [[[1.0], [0.5]], [[-0.4], [2.0]]], "cov_diag": [0.5, 2.0]},
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
    "relaxed_one_hot": Case("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": PROBS}, SIMPLEX),
    "relaxed_one_hot_logits": Case(
        "RelaxedOneHotCategorical", {"temperature": 2.0, "logits": LOGITS}, SIMPLEX
    ),
    "straight_through": Case("OneHotCategoricalStraightThrough", {"probs": PROBS}, ONE_HOT),
    "student": Case("StudentT", {"df": [2.1, 2.5, 30.0], **LOC_SCALE}, REAL),
    "von_mises": Case(
        "VonMises", {"loc": [0.5, -1.0, 2.0], "concentration": [0.3, 2.0, 3.0]}, REAL
    ),
    "weibull": Case("Weibull", {"scale": [0.5, 2.0, 30.0], "concentration": [1.2, 1.5, 3.0]}, POSITIVE),
    "wishart": Case("Wishart", {"df": [2.5, 4.0], "covariance_matrix": MATRIX}, MATRICES),
    "wishart_precision": Case("Wishart", {"df": 3.0, "precision_matrix": MATRIX}, MATRICES),
    "wishart_factor": Case("Wishart", {"df": [3.0, 9.0], "scale_tril": FACTOR[0]}, MATRICES),
    "uniform": Case("Uniform", {"low": [0.0, -1.0, 2.0], "high": [1.0, 3.0, 2.5]}, [0.1, 0.5, 2.25]),
}

METHODS = ("log_prob", "cdf", "icdf", "entropy", "mean", "variance", "stddev", "mode")


def leaves(lib, parameters):
    """The parameters as tensors that require grad."""
    return {
        name: lib.tensor(value, dtype=lib.float64, requires_grad=True)
        for name, value in parameters.items()
    }


def made(lib, case, parameters):
    if "scale_tril" in parameters:  # the other triangle is not read
        parameters = parameters | {"scale_tril": parameters["scale_tril"].tril()}
    return getattr(lib.distributions, case.kind)(**case.options, **parameters)


def result(distribution, method, value, probability):
    """What a method gives, None if there is none."""
    try:
        found = getattr(distribution, method)
        if method in ("log_prob", "cdf"):
            return found(value)
        return found(probability) if method == "icdf" else found() if callable(found) else found
    except NotImplementedError:
        return None


def weighted(lib, tensor):
    """A sum in which each element has another weight."""
    weights = lib.arange(tensor.numel(), dtype=tensor.dtype) * 0.37 + 1
    return (tensor.reshape(-1) * weights).sum()


def answers(lib, case):
    """The results of all methods of a case, and the gradients with respect to parameters, value
    and probability, as lists.
    """
    parameters = leaves(lib, case.parameters)
    dtype = lib.int64 if case.of_ints else lib.float64
    value = lib.tensor(case.value, dtype=dtype, requires_grad=not case.of_ints)
    probability = lib.tensor(PROBABILITY, dtype=lib.float64, requires_grad=True)
    inputs = {**parameters, "value": value, "probability": probability}
    inputs = {name: each for name, each in inputs.items() if each.requires_grad}
    found = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = result(made(lib, case, parameters), method, value, probability)
        if output is None:
            continue
        found[method] = output.tolist()
        if output.requires_grad and method != "mode":
            try:
                slopes = lib.autograd.grad(
                    weighted(lib, output), list(inputs.values()), allow_unused=True
                )
            except NotImplementedError:  # of PyTorch's igamma
                continue
            for name, slope in zip(inputs, slopes, strict=True):
                if slope is not None and bool((slope != 0).any()):
                    found[f"{method} by {name}"] = slope.tolist()
    return found
