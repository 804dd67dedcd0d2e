"""Pruning: weights multiplied by masks of zeros and ones, as torch.nn.utils.prune.

A pruned parameter `weight` becomes `weight_orig`, with the mask as a buffer `weight_mask`; a hook
computes `weight` from them before each call of the module.
"""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

from ...frontend import factories, random
from ...functions.norm import norm
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from ..module import Module
from .convert_parameters import parameters_to_vector

AMOUNT = "amount={} should either be a float in the range [0, 1] or a non-negative integer"


class BasePruningMethod(abc.ABC):
    """The base class of pruning methods.

    A subclass defines `compute_mask(t, default_mask)` and `PRUNING_TYPE`: "unstructured" for a mask
    of single elements, "structured" for one of slices along its attribute `dim`, "global" for one
    of the whole tensor. A second method on a tensor is applied to what the first one left.

    >>> class Small(jaxgrad.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t.abs() >= 0.5)
    >>> layer = jaxgrad.nn.Linear(2, 1, bias=False)
    >>> layer.load_state_dict({"weight": jaxgrad.tensor([[0.25, -2.0]])})
    <All keys matched successfully>
    >>> method = Small.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[0., 1.]])
    """

    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor, of its shape.

        t: the importance of each element. default_mask: the mask so far.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Return the original tensor of a module times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune the tensor of that name and return the hook that applies the mask.

        args, kwargs: those of the constructor. importance_scores: what decides on the mask, of the
        shape of the tensor, which it is by default.
        """
        method = cls._joined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        _check_scores(scores, original, f"parameter {name} of {module}")
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            mask = factories.ones_like(original)
        else:
            mask = getattr(module, f"{name}_mask").detach().clone()
        try:
            new_mask = method.compute_mask(scores, default_mask=mask)
            module.register_buffer(f"{name}_mask", new_mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                module.register_parameter(name, getattr(module, f"{name}_orig"))
                del module._parameters[f"{name}_orig"]
            raise
        return method

    @staticmethod
    def _joined(module, name, method):
        """Return a method, joined to the one that the tensor has, whose hook is removed."""
        method._tensor_name = name
        hooks = _hooks_on(module, name)
        if len(hooks) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module "
                f"{module}. Use a PruningContainer."
            )
        for number, before in hooks:
            module._forward_pre_hooks.pop(number)
            container = before
            if not isinstance(before, PruningContainer):
                container = PruningContainer(before)
            container.add_pruning_method(method)
            return container
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Return a tensor times its mask; default_mask: ones by default."""
        scores = t if importance_scores is None else importance_scores
        _check_scores(scores, t, "tensor t")
        mask = factories.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter; its hook is to be removed by the caller."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        original.data = weight.detach()
        delattr(module, f"{name}_orig")
        delattr(module, f"{name}_mask")
        setattr(module, name, original)


def _hooks_on(module: Module, name: str | None = None) -> list[tuple[int, BasePruningMethod]]:
    """Return the pruning hooks of a module with their numbers; of one tensor, or of all."""
    return [
        (number, hook)
        for number, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)
    ]


def _check_scores(scores, tensor, what):
    if scores.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs "
            f"{tensor.shape}"
        )


class PruningContainer(BasePruningMethod):
    """Pruning methods on one tensor; each prunes what the methods before it left.

    args: the methods. Raises TypeError for other objects, ValueError for methods on another tensor.

    >>> prune, layer = jaxgrad.nn.utils.prune, jaxgrad.nn.Linear(2, 2)
    >>> methods = [prune.L1Unstructured.apply(layer, "weight", amount=1) for _ in range(2)]
    >>> len(methods[1]), int(layer.weight_mask.sum())
    (2, 2)
    """

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append a method."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        part = self._part(method, t, default_mask)
        mask = default_mask.to(t.dtype, copy=True)
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(mask.dtype)
        return mask

    @staticmethod
    def _part(method, t, mask):
        """Return the index of the part that a method may prune."""
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        if method.PRUNING_TYPE == "global":
            return (slice(None),) * t.ndim
        if method.PRUNING_TYPE != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` '
                "defined."
            )
        dim = method.dim + t.ndim if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
        kept = mask.sum([axis for axis in range(t.ndim) if axis != dim]) != 0
        return (*(slice(None),) * dim, kept)


# ---- the methods


class Identity(BasePruningMethod):
    """Prunes nothing, with a mask of ones.

    >>> layer = jaxgrad.nn.Linear(1, 1)
    >>> method = jaxgrad.nn.utils.prune.Identity.apply(layer, "weight")
    >>> layer.weight_mask
    tensor([[1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:
        return super().apply(module, name)


def _validate_pruning_amount_init(amount) -> None:
    """Raise TypeError or ValueError for what is no amount to prune."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and not amount <= 1.0):
        raise ValueError(AMOUNT.format(amount))


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """Raise ValueError for a number beyond the size of a tensor."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """The number of elements or slices for an amount.

    >>> from jaxgrad.nn.utils import prune
    >>> [prune._compute_nparams_toprune(amount, 17) for amount in (3, 0.4)]
    [3, 7]
    """
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


class _Amount(BasePruningMethod):
    """A method that prunes a number of elements or slices, or a share of them."""

    def __init__(self, amount: float):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def count(self, size: int) -> int:
        """Return how many of `size` elements or slices to prune."""
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class _Unstructured(_Amount):
    """A method that prunes the elements of least `scores`."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self.count(t.numel())
        mask = default_mask.clone()
        if count:
            places = self.scores(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[places] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    amount: the number of elements, or a share of them between 0.0 and 1.0. Raises ValueError for
    another number.

    >>> layer = jaxgrad.nn.Linear(2, 2)
    >>> method = jaxgrad.nn.utils.prune.RandomUnstructured.apply(layer, "weight", amount=3)
    >>> int(layer.weight_mask.sum())
    1
    """

    def scores(self, t: Tensor) -> Tensor:
        return -random.rand_like(t)  # the greatest numbers are pruned, as in PyTorch

    @classmethod
    def apply(cls, module: Module, name: str, amount: int | float) -> BasePruningMethod:
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements of least absolute value.

    amount: as for `RandomUnstructured`.

    >>> method = jaxgrad.nn.utils.prune.L1Unstructured(amount=1)
    >>> method.prune(jaxgrad.tensor([1.0, -0.5, 2.0]))
    tensor([1., -0., 2.])
    """

    def scores(self, t: Tensor) -> Tensor:
        return t.abs()

    @classmethod
    def apply(
        cls, module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_Amount):
    """A method that prunes the slices along `dim` of least `scores`."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self.count(size)
        if not count:
            return default_mask
        shape = [1] * t.ndim
        shape[self.dim] = size
        kept = t.new_zeros(size)
        kept[self.scores(t).topk(size - count).indices] = 1
        return kept.reshape(shape) * default_mask.to(t.dtype)


class RandomStructured(_Structured):
    """Prunes slices at random.

    amount: as for `RandomUnstructured`, of slices. dim: the dimension that they are slices of.
    Raises IndexError for a dimension that there is not, ValueError for fewer than two dimensions.

    >>> layer = jaxgrad.nn.Linear(3, 2)
    >>> apply = jaxgrad.nn.utils.prune.RandomStructured.apply
    >>> method = apply(layer, "weight", amount=2, dim=1)
    >>> layer.weight_mask.sum(1)
    tensor([1., 1.])
    """

    def __init__(self, amount: float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Tensor) -> Tensor:
        return random.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(
        cls, module: Module, name: str, amount: int | float, dim: int = -1
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices of least norm.

    amount, dim: as for `RandomStructured`. n: the order of the norm, as `p` of `jaxgrad.norm`.

    >>> method = jaxgrad.nn.utils.prune.LnStructured(amount=1, n=2, dim=0)
    >>> method.prune(jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[0., 0.],
            [3., 4.]])
    """

    def __init__(self, amount: float, n: float | str, dim: int = -1):
        super().__init__(amount)
        self.n, self.dim = n, dim

    def scores(self, t: Tensor) -> Tensor:
        kept = range(t.ndim)[self.dim]
        return norm(t, p=self.n, dim=[dim for dim in range(t.ndim) if dim != kept])

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        amount: int | float,
        n: float | str,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero.

    mask: of the shape of the tensor, else AssertionError.

    >>> method = jaxgrad.nn.utils.prune.CustomFromMask(jaxgrad.tensor([1, 0]))
    >>> method.prune(jaxgrad.tensor([3.0, 4.0]))
    tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:
        return super().apply(module, name, mask=mask)


# ---- as functions


def identity(module: Module, name: str) -> Module:
    """Prune nothing of a parameter, so that it has the names of a pruned one; return the module.

    >>> layer = jaxgrad.nn.utils.prune.identity(jaxgrad.nn.Linear(1, 1), "weight")
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_mask']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random, as `RandomUnstructured`; return the module.

    >>> layer = jaxgrad.nn.Linear(2, 2)
    >>> layer = jaxgrad.nn.utils.prune.random_unstructured(layer, "weight", amount=0.5)
    >>> int(layer.weight_mask.sum())
    2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter of least absolute value, as `L1Unstructured`; return the
    module.

    importance_scores: those values, of the shape of the parameter, which it is by default.

    >>> layer, scores = jaxgrad.nn.Linear(2, 1), jaxgrad.tensor([[3.0, -1.0]])
    >>> layer = jaxgrad.nn.utils.prune.l1_unstructured(layer, "weight", 1, scores)
    >>> layer.weight_mask
    tensor([[1., 0.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter at random, as `RandomStructured`; return the module.

    >>> layer = jaxgrad.nn.Linear(2, 2)
    >>> layer = jaxgrad.nn.utils.prune.random_structured(layer, "weight", amount=1, dim=0)
    >>> layer.weight_mask.sum(0)
    tensor([1., 1.])
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a parameter of least norm, as `LnStructured`; return the module.

    importance_scores: as for `l1_unstructured`.

    >>> layer = jaxgrad.nn.Linear(2, 2)
    >>> scores = jaxgrad.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> prune = jaxgrad.nn.utils.prune.ln_structured
    >>> prune(layer, "weight", 1, n=1, dim=0, importance_scores=scores).weight_mask
    tensor([[1., 1.],
            [0., 0.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask of its shape is zero; return the module.

    >>> layer, mask = jaxgrad.nn.Linear(2, 1), jaxgrad.tensor([[0, 1]])
    >>> jaxgrad.nn.utils.prune.custom_from_mask(layer, "weight", mask).weight_mask
    tensor([[0., 1.]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one vector.

    parameters: pairs of a module and a name. pruning_method: a class of type "unstructured", kwargs
    its arguments. importance_scores: by such a pair what decides, of the shape of the parameter,
    which it is by default. Raises TypeError for another type of method or scores.

    >>> a, b = jaxgrad.nn.Linear(2, 1), jaxgrad.nn.Linear(3, 1)
    >>> prune, pairs = jaxgrad.nn.utils.prune, [(a, "weight"), (b, "weight")]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
    >>> int(a.weight_mask.sum() + b.weight_mask.sum())
    3
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name, getattr(module, name)) for module, name in parameters]
    scores = [importance_scores.get((module, name), weight) for module, name, weight in pairs]
    masks = [
        getattr(module, f"{name}_mask", factories.ones_like(weight))
        for module, name, weight in pairs
    ]
    container = PruningContainer()
    method = pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    parts = mask.split([weight.numel() for *_, weight in pairs])
    for (module, name, weight), part in zip(pairs, parts, strict=True):
        custom_from_mask(module, name, part.reshape(weight.shape))


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor the parameter again, with its zeros, and return the module.

    Raises ValueError if it is not pruned.

    >>> layer = jaxgrad.nn.utils.prune.identity(jaxgrad.nn.Linear(1, 1), "weight")
    >>> list(jaxgrad.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    for number, hook in _hooks_on(module, name):
        hook.remove(module)
        module._forward_pre_hooks.pop(number)
        return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Return whether a tensor of a module or of a descendant is pruned.

    >>> prune, layer = jaxgrad.nn.utils.prune, jaxgrad.nn.Linear(1, 1)
    >>> prune.is_pruned(layer), prune.is_pruned(prune.identity(layer, "bias"))
    (False, True)
    """
    return any(_hooks_on(submodule) for submodule in module.modules())


__getattr__ = missing_in(__name__)
