"""Random parameters and tensors for benchmarks, as torch.utils.benchmark's Fuzzer draws them: from
a seed it draws PyTorch's numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ...core import dtypes
from ...frontend import random
from ...frontend.generator import manual_seed
from ...names.missing import missing_in

# so many sets of parameters are drawn before `Fuzzer.take` gives up
MOST_DRAWS = 1000


class FuzzedParameter:
    """A number, or another value, that a `Fuzzer` draws.

    name: by which tensors refer to it. minval, maxval: its bounds, both included. distribution:
    "uniform", of integers if both bounds are; "loguniform", integers whose logarithms are uniform;
    or a dict of probabilities by value, without bounds. strict: whether it is drawn once for each
    set of parameters, also if the set is drawn again because others do not fit.

    Raises AssertionError for another distribution. PyTorch 2.13 refuses dicts whose probabilities
    add up to 1, and takes others; here it is the other way round.

    >>> from jaxgrad.utils.benchmark import FuzzedParameter
    >>> import numpy as np
    >>> FuzzedParameter("n", 2, 2, "uniform").sample(np.random.RandomState(0))
    2
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict | None = None,
        strict: bool = False,
    ):
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        self._distribution = distribution
        if isinstance(distribution, dict):
            self._check_probabilities()
        elif distribution not in ("loguniform", "uniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")

    def _check_probabilities(self):
        probabilities = self._distribution.values()
        if min(probabilities, default=0) < 0:
            raise AssertionError("Probabilities cannot be negative")
        if abs(sum(probabilities) - 1) > 1e-5:
            raise AssertionError(
                f"Distribution is not normalized: the probabilities add up to {sum(probabilities)}"
            )
        for bound in ("minval", "maxval"):
            if getattr(self, f"_{bound}") is not None:
                raise AssertionError(f"When passing a custom distribution, '{bound}' must be None")

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    def sample(self, state: np.random.RandomState):
        """Draw a value."""
        low, high, distribution = self._minval, self._maxval, self._distribution
        if isinstance(distribution, dict):
            place = state.choice(len(distribution), p=tuple(distribution.values()))
            return [*distribution][place]
        if distribution == "loguniform":
            drawn = int(2 ** state.uniform(np.log2(low), np.log2(high)))
            return min(max(drawn, low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low, high + 1))
        return state.uniform(low, high)


class ParameterAlias:
    """A value of a `FuzzedParameter` that stands for the value of another one.

    alias_to: the name of the other.

    >>> from jaxgrad.utils.benchmark import ParameterAlias
    >>> ParameterAlias("n")
    ParameterAlias[alias_to: n]
    """

    def __init__(self, alias_to: str):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor that a `Fuzzer` makes.

    name: in the results. size: extents, numbers or names of parameters. steps: the tensor shows
    every so many elements of a larger one, in each dimension. probability_contiguous: how often its
    memory is in the order of its dimensions. min_elements, max_elements, max_allocation_bytes:
    bounds of what it shows and of the larger one. dim_parameter: the name of the parameter that
    says how many dimensions there are. dtype, cuda: what it is made of, and where. roll_parameter:
    has no effect, as in PyTorch. tensor_constructor: makes the larger tensor from the keyword
    arguments `size` and `dtype` and all parameters.

    >>> from jaxgrad.utils.benchmark import FuzzedTensor, Fuzzer
    >>> fuzzer = Fuzzer([], [FuzzedTensor("x", (2, 3))], seed=0)
    >>> [properties["x"]["numel"] for _, properties, _ in fuzzer.take(1)]
    [6]
    """

    def __init__(
        self,
        name: str,
        size: tuple,
        steps: tuple | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype=dtypes.float32,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ):
        self._name, self._size, self._steps, self._dim_parameter = name, size, steps, dim_parameter
        self._probability_contiguous, self._dtype, self._cuda = probability_contiguous, dtype, cuda
        self._bounds = (min_elements, max_elements, max_allocation_bytes)
        self._tensor_constructor = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **parameters):
        """Return a tensor of uniform random numbers: below 1, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return random.rand(size=size, dtype=dtype, device="cpu")
        return random.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, parameters: dict, state):
        size, steps, allocated = self._get_size_and_steps(parameters)
        tensor = self._tensor_constructor(size=allocated, dtype=self._dtype, **parameters)
        tensor = tensor.cuda() if self._cuda else tensor
        order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and (order == np.arange(len(size))).all():
                order = state.permutation(len(size))
            tensor = tensor.permute(tuple(order.tolist())).contiguous()
            tensor = tensor.permute(tuple(np.argsort(order).tolist()))
        places = zip(size, steps, strict=True)
        tensor = tensor[tuple(slice(0, extent * step, step) for extent, step in places)]
        properties = {"numel": tensor.numel(), "order": order, "steps": steps}
        properties |= {"is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}
        return tensor, properties

    def _get_size_and_steps(self, parameters: dict):
        """The size, the steps, and the size of what is allocated, of numbers."""
        dim = parameters.get(self._dim_parameter, len(self._size))

        def numbers(names):
            known = [parameters.get(name, name) for name in names][:dim]
            return (*known, *[1] * (dim - len(known)))

        size, steps = numbers(self._size), numbers(self._steps or ())
        return size, steps, tuple(map(math.prod, zip(size, steps, strict=True)))

    def satisfies_constraints(self, parameters: dict) -> bool:
        """Return whether parameters lead to a tensor within the bounds."""
        size, _, allocated = self._get_size_and_steps(parameters)
        least, most, most_bytes = self._bounds
        count, nbytes = math.prod(size), math.prod(allocated) * self._dtype.itemsize
        is_small = (most is None or count <= most) and (most_bytes is None or nbytes <= most_bytes)
        return is_small and (least is None or count >= least)


class Fuzzer:
    """Draws parameters and makes tensors of them.

    parameters, tensors: `FuzzedParameter` and `FuzzedTensor`, or lists of them. constraints:
    functions of a dict of all parameters that say whether it is valid. seed: of all that is drawn.

    Raises ValueError where a parameter and a tensor have one name.

    >>> from jaxgrad.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
    >>> extent, tensor = FuzzedParameter("n", 2, 2, "uniform"), FuzzedTensor("x", ("n", 3))
    >>> fuzzer = Fuzzer([extent], [tensor], seed=0)
    >>> [tensors["x"].ndim for tensors, _, _ in fuzzer.take(2)]
    [2, 2]
    """

    def __init__(
        self,
        parameters: Sequence,
        tensors: Sequence,
        constraints: Iterable[Callable] | None = None,
        seed: int | None = None,
    ):
        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters = _flat(parameters, FuzzedParameter)
        self._tensors = _flat(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        names = ({one.name for one in group} for group in (self._parameters, self._tensors))
        both = set.intersection(*names)
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict, dict, dict]]:
        """Yield `n` times the tensors, their properties and the parameters, in dicts by name.

        Raises ValueError if no valid parameters are found.
        """
        state = np.random.RandomState(self._seed)
        manual_seed(state.randint(low=0, high=2**63, dtype=np.int64))
        for _ in range(n):
            parameters = self._generate(state)
            results = [one._make_tensor(parameters, state) for one in self._tensors]
            pairs = [*zip(self._tensors, results, strict=True)]
            tensors = {one.name: tensor for one, (tensor, _) in pairs}
            yield tensors, {one.name: facts for one, (_, facts) in pairs}, parameters

    @property
    def rejection_rate(self) -> float:
        """The share of the sets of parameters that were not valid."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state) -> dict:
        strict = {}
        for _ in range(MOST_DRAWS):
            drawn = {}
            for one in self._parameters:
                value = strict[one.name] if one.name in strict else one.sample(state)
                drawn[one.name] = value
                if one.strict:
                    strict[one.name] = value
            parameters = self._resolve_aliases(drawn)
            self._total_generated += 1
            fits = all(constraint(parameters) for constraint in self._constraints)
            if fits and all(one.satisfies_constraints(parameters) for one in self._tensors):
                return parameters
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(parameters: dict) -> dict:
        """The parameters with the values that aliases stand for."""
        resolved = {}
        for name, value in parameters.items():
            for _ in parameters:
                if isinstance(value, ParameterAlias):
                    value = parameters[value.alias_to]
            if isinstance(value, ParameterAlias):
                raise ValueError(f"ParameterAlias cycle detected\n{parameters}")
            resolved[name] = value
        return resolved


def _flat(values, kind) -> tuple:
    """The objects of a kind in a list, and in lists in it."""
    return tuple(
        itertools.chain.from_iterable(
            [value] if isinstance(value, kind) else value for value in values
        )
    )


__getattr__ = missing_in(__name__)
