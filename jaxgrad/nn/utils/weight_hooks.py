"""The older forms of weight and spectral normalization: hooks that compute a weight before each
call. `parametrizations` has the newer forms.
"""

from __future__ import annotations

import warnings
from typing import Any

from ... import ops
from ...autograd.grad_mode import no_grad
from ...functions.norm import norm_except_dim
from ...functions.normalization import _weight_norm
from ...tape.tensor import Tensor
from .. import functional
from ..module import Module
from ..parameter import Parameter
from .parametrizations import as_matrix, channel_dim, check_iterations

OLDER = (
    "`torch.nn.utils.weight_norm` is deprecated in favor of "
    "`torch.nn.utils.parametrizations.weight_norm`."
)


def hooks_of(module: Module, kind: type, name: str) -> list[int]:
    """Return the numbers of the pre-hooks of a kind on the tensor of that name."""
    pre_hooks = module._forward_pre_hooks.items()
    return [number for number, hook in pre_hooks if isinstance(hook, kind) and hook.name == name]


def pop_hook(module: Module, kind: type, name: str, what: str) -> Any:
    """Remove and return the pre-hook of a kind. Raises ValueError if there is none."""
    for number in hooks_of(module, kind, name):
        return module._forward_pre_hooks.pop(number)
    raise ValueError(f"{what} of '{name}' not found in {module}")


def _refuse_second(module, kind, name, what):
    if hooks_of(module, kind, name):
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")


class WeightNorm:
    """The hook of `weight_norm`: a weight from its norms `<name>_g` and direction `<name>_v`."""

    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return _weight_norm(v, g, self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight as `g * v / norm(v)` before each call of a module; return the module.

    `<name>_g` and `<name>_v` replace the parameter. dim: the dimension that has a norm for each
    index; None for one norm of the whole tensor. Deprecated in favor of
    `jaxgrad.nn.utils.parametrizations.weight_norm`, which says so in a FutureWarning. Raises
    RuntimeError if the parameter has such a hook. Source: Salimans and Kingma, "Weight
    Normalization", 2016.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = jaxgrad.nn.utils.weight_norm(jaxgrad.nn.Linear(2, 3))
    >>> list(layer.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(OLDER, FutureWarning, stacklevel=2)
    _refuse_second(module, WeightNorm, name, "weight_norm")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    del module._parameters[name]
    with no_grad():
        norms = norm_except_dim(weight, 2, hook.dim)
    module.register_parameter(f"{name}_g", Parameter(norms))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight with `weight_norm` a parameter again, of the same value; return the module.

    Raises ValueError if it has no such hook.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = jaxgrad.nn.utils.weight_norm(jaxgrad.nn.Linear(2, 3))
    >>> list(jaxgrad.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook = pop_hook(module, WeightNorm, name, "weight_norm")
    weight = hook.compute_weight(module)
    for attribute in (name, f"{name}_g", f"{name}_v"):
        delattr(module, attribute)
    setattr(module, name, Parameter(weight.detach()))
    return module


class SpectralNorm:
    """The hook of `spectral_norm`: `<name>_orig` over an estimate of its largest singular value, by
    the vectors `<name>_u` and `<name>_v`.
    """

    _version = 1

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        check_iterations(n_power_iterations)
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(functional.normalize(matrix.t() @ u, dim=0, eps=self.eps))
                    u.copy_(functional.normalize(matrix @ v, dim=0, eps=self.eps))
                # the next iterations write the buffers in place
                u, v = u.clone(), v.clone()
        return weight / ops.dot(u, ops.mv(matrix, v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Notes the version of a hook in the metadata of a state dict."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(
        self,
        module: Module,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
    ) -> None:
        version = {f"{self.fn.name}.version": self.fn._version}
        local_metadata.setdefault("spectral_norm", {}).update(version)


class SpectralNormLoadStateDictPreHook:
    """Computes the vector `v`, which state dicts before version 1 have not, from the weight."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *unexpected: list[str],
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        key = prefix + self.fn.name
        is_new = all(key + part in state_dict for part in ("_orig", "_u", "_v"))
        if (version is not None and version >= 1) or (is_new and key not in state_dict):
            return
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, self.fn.dim)
            v = ops.linalg_pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
            state_dict[f"{key}_v"] = v * (sigma / ops.dot(u, ops.mv(matrix, v)))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value before each call of a module; return the
    module.

    The parameter becomes `<name>_orig`, and the buffers `<name>_u` and `<name>_v` estimate the
    singular value, by `n_power_iterations` of each call in training mode. The other arguments are
    those of `jaxgrad.nn.utils.parametrizations.spectral_norm`, the newer form. Raises RuntimeError
    if the parameter has such a hook, ValueError if it is None. Source: Miyato et al., "Spectral
    Normalization for Generative Adversarial Networks", 2018.

    >>> layer = jaxgrad.nn.utils.spectral_norm(jaxgrad.nn.Linear(2, 3))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    _refuse_second(module, SpectralNorm, name, "spectral_norm")
    dim = channel_dim(module) if dim is None else dim
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with no_grad():
        vectors = [
            functional.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps)
            for size in as_matrix(weight, dim).shape
        ]
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    for part, vector in zip("uv", vectors, strict=True):
        module.register_buffer(f"{name}_{part}", vector)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight with `spectral_norm` a parameter again, of the value of the last estimate;
    return the module.

    Raises ValueError if it has no such hook.

    >>> layer = jaxgrad.nn.utils.spectral_norm(jaxgrad.nn.Linear(2, 3))
    >>> list(jaxgrad.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook = pop_hook(module, SpectralNorm, name, "spectral_norm")
    with no_grad():
        weight = hook.compute_weight(module, False)
    for entry in (name, f"{name}_u", f"{name}_v", f"{name}_orig"):
        delattr(module, entry)
    module.register_parameter(name, Parameter(weight))
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, entry in list(hooks.items()):
            function = getattr(entry, "hook", entry)
            if getattr(function, "fn", None) is hook:
                hooks.pop(number)
    return module


# in PyTorch a function and the module of its classes have one name: files name the latter
vars(weight_norm).update(WeightNorm=WeightNorm)
vars(spectral_norm).update(
    SpectralNorm=SpectralNorm,
    SpectralNormLoadStateDictPreHook=SpectralNormLoadStateDictPreHook,
    SpectralNormStateDictHook=SpectralNormStateDictHook,
)
