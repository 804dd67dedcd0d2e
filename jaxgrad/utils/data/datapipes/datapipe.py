"""Pipes of data: datasets that have other pipes as methods, `pipe.shuffle().batch(3)`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import ClassVar, TypeVar

from ....frontend.generator import Generator
from ....names.missing import missing_in
from ..dataset import Dataset, IterableDataset
from ..sampler import new_seed

_T_co = TypeVar("_T_co", covariant=True)


def pipes_in(value):
    """The pipes in an attribute of a pipe, also in lists and dicts."""
    if isinstance(value, _WithFunctions):
        yield value
    elif isinstance(value, list | tuple | set | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from pipes_in(item)
    elif "main_datapipe" in getattr(value, "__dict__", ()):
        yield from pipes_in(value.main_datapipe)


def pipes_of(graph: dict) -> list:
    """The pipes of a graph, each once."""
    pipes: dict = {}
    for number, (pipe, inner) in graph.items():
        pipes[number] = pipe
        pipes |= {id(other): other for other in pipes_of(inner)}
    return [*pipes.values()]


def _divide(graph: dict, part: tuple, divided=None):
    """Divide the pipes of a graph; `divided`: a pipe with their elements that has been. Raises
    RuntimeError where a pipe would have a part of a part.
    """
    for pipe, inner in graph.values():
        is_divisible = hasattr(type(pipe), "apply_sharding")
        if is_divisible and divided is not None:
            raise RuntimeError(
                "Sharding twice on a single pipeline is likely unintended and will cause data "
                f"loss. Sharding already applied to {divided} while trying to apply to {pipe}"
            )
        if is_divisible:
            takes = len(inspect.signature(pipe.apply_sharding).parameters)
            pipe.apply_sharding(*part[:takes])
        _divide(inner, part, pipe if is_divisible else divided)


class RandomOrder:
    """The settings of a pipe whose order may be random: `_enabled` and `_seed`."""

    def set_shuffle(self, shuffle: bool = True):
        """Choose whether the order is random, and return the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int):
        """Choose the order of the next iteration, and return the pipe."""
        self._seed = seed
        return self


class _WithFunctions:
    """A pipe whose methods include the classes that `functional_datapipe` has named."""

    functions: ClassVar[dict[str, Callable]]

    def __getattr__(self, name: str):
        if name in self.functions:
            return functools.partial(self.functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    def __repr__(self):
        return type(self).__qualname__

    def _graph(self, above=frozenset()) -> dict:
        """By its id this pipe, and the graphs of the pipes in its attributes."""
        if id(self) in above:
            return {}
        inner: dict = {}
        for pipe in pipes_in(list(vars(self).values())):
            inner |= pipe._graph(above | {id(self)})
        return {id(self): (self, inner)}

    def _divide(self, *part):
        """Give the pipes that can be divided one of several parts: how many, its number, and maybe
        the group of the parts.
        """
        _divide(self._graph(), part)

    def _set_seeds(self, generator: Generator):
        """Give the pipes that draw random numbers seeds of a generator."""
        for pipe in pipes_of(self._graph()):
            if hasattr(type(pipe), "set_seed"):
                pipe.set_seed(new_seed(generator))

    @classmethod
    def register_function(cls, function_name: str, function: Callable):
        """Make a function of a pipe, and of other arguments, a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register, enable_df_api_tracing: bool = False
    ):
        """Make a class of pipes a method of all pipes. Raises Exception if the name is taken."""
        if enable_df_api_tracing:
            raise NotImplementedError("enable_df_api_tracing: jaxgrad has no pipes of data frames")
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register


class IterDataPipe(_WithFunctions, IterableDataset[_T_co]):
    """A pipe that is iterated over: subclasses define `__iter__`.

    A new iterator of a pipe makes its older ones invalid: they raise RuntimeError.

    >>> data = jaxgrad.utils.data
    >>> @data.functional_datapipe("doubled")
    ... class Doubled(data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (2 * item for item in self.source)
    >>> list(Doubled([1, 2]).doubled())
    [4, 8]
    """

    functions: ClassVar[dict[str, Callable]] = {}
    _last_iterator = 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = _numbered(vars(cls)["__iter__"])

    def __iter__(self) -> Iterator[_T_co]:
        return self

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_last_iterator"}

    def reset(self):
        """Do nothing: subclasses clear here what they keep, before each iteration."""


class MapDataPipe(_WithFunctions, Dataset[_T_co]):
    """A pipe with samples by index: subclasses define `__getitem__` and `__len__`."""

    functions: ClassVar[dict[str, Callable]] = {}


def _numbered(iterate):
    """An `__iter__` whose iterators end with an error once there is a newer one of their pipe."""

    @functools.wraps(iterate)
    def numbered(pipe):
        pipe._last_iterator = number = pipe._last_iterator + 1
        pipe.reset()
        return _while_last(pipe, iterate(pipe), number)

    return numbered


def _while_last(pipe, iterator, number):
    while pipe._last_iterator == number:
        try:
            item = next(iterator)
        except StopIteration:
            return
        yield item
    raise RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the "
        f"same IterDataPipe: {pipe!r}. This may be caused multiple references to the same "
        "IterDataPipe."
    )


class DataChunk(list):
    """The elements of a batch.

    items: the elements.

    >>> print(jaxgrad.utils.data.DataChunk([1, 2]))
    [1, 2]
    """

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The elements as text, after an indentation."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self) -> Iterator:
        """Iterate over the elements as they were given."""
        yield from self.items


def length_of(pipe, source) -> int:
    """The length of what a pipe has as its source. Raises TypeError where that has none."""
    if not hasattr(type(source), "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


class functional_datapipe:
    """Decorates a class of pipes, which become a method of all pipes under a name."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: type) -> type:
        for kind in (IterDataPipe, MapDataPipe):
            if issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
                break
        return cls


__getattr__ = missing_in(__name__)
