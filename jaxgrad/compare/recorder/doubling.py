"""A run in double precision with the numbers of the run in single precision.

What is drawn, read or written in the script is made in single precision and then converted, so that
both runs start from the same numbers. What is computed from it is computed in double precision.

The libraries may round the last bit of a drawn number otherwise, which in double precision would be
a difference. So the second run takes the numbers of the first.
"""

from __future__ import annotations

import numpy as np

from .values import is_inplace, name_of, replace, tensors_in

DRAWS = {
    *("bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_"),
    *("multinomial", "normal", "normal_", "poisson", "rand", "rand_like", "randn", "randn_like"),
    *("uniform_", "kaiming_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_"),
    *("xavier_normal_", "xavier_uniform_"),
}
MASKS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout"}


class SharedDraws:
    """The numbers that the first run draws, in a file, for the second one."""

    def __init__(self, path: str, writes: bool):
        self.path, self.writes, self.place = path, writes, 0

    def exchanged(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers of the first run, where they are the same up to rounding."""
        if self.writes:
            with open(self.path, "ab") as file:
                np.save(file, numbers)
            return numbers
        try:
            with open(self.path, "rb") as file:
                file.seek(self.place)
                first = np.lib.format.read_array(file)
                self.place = file.tell()
        except (EOFError, OSError, ValueError):
            return numbers  # the first run has drawn less
        is_same = first.shape == numbers.shape and np.allclose(
            first, numbers, rtol=1e-5, atol=1e-6, equal_nan=True
        )
        return first if is_same else numbers


class Doubling:
    """Calls functions in double precision.

    torch: the library. draws: where drawn numbers are shared, None where they are not.
    """

    def __init__(self, torch, draws: SharedDraws | None = None):
        self.torch, self.draws = torch, draws
        self.from_numpy = torch.from_numpy  # which PyTorch shows to no mode
        replace("from_numpy", lambda array: self.doubled(self.from_numpy(array)))

    def call(self, function, args, kwargs):
        name = name_of(function)
        if name == "__get__" or name.startswith("set_"):
            return function(*args, **kwargs)
        if name in DRAWS:
            return self.draw(function, name, args, kwargs)
        if name in MASKS and self.is_double(args[:1]):
            mask = function(
                self.torch.ones_like(args[0], dtype=self.torch.float32), *args[1:], **kwargs
            )
            return args[0] * mask.double()
        if self.is_double((args, kwargs)):
            if name == "float":
                return args[0].double()
            args, kwargs = self.replaced((args, kwargs), self.torch.float32, self.torch.float64)
            if not is_inplace(name):
                args, kwargs = self.doubled(args), {k: self.doubled(v) for k, v in kwargs.items()}
        return self.doubled(function(*args, **kwargs))

    def draw(self, function, name, args, kwargs):
        """Draw in single precision."""
        single = tuple(self.single(value) for value in args)
        options = {key: self.single(value) for key, value in kwargs.items()}
        options = self.replaced(options, self.torch.float64, self.torch.float32)
        result = function(*single, **options)
        target = args[0] if args else next(iter(kwargs.values()), None)
        if is_inplace(name) and self.is_double((target,)):
            drawn = single[0] if single else next(iter(options.values()))
            with self.torch.no_grad():
                target.copy_(self.shared(drawn))
            return target
        return self.doubled(self.shared(result))

    def shared(self, drawn):
        """A drawn tensor with the numbers of the first run."""
        is_single = isinstance(drawn, self.torch.Tensor) and drawn.dtype == self.torch.float32
        if self.draws is None or not is_single or drawn.requires_grad:
            return drawn
        return self.from_numpy(self.draws.exchanged(drawn.numpy()).copy())

    def is_double(self, values) -> bool:
        tensors = tensors_in(values, self.torch.Tensor)
        return any(tensor.dtype == self.torch.float64 for tensor in tensors)

    def single(self, value):
        if isinstance(value, self.torch.Tensor) and value.dtype == self.torch.float64:
            return value.detach().float()
        return value

    def doubled(self, result):
        """A result with its tensors of single precision converted."""
        if isinstance(result, self.torch.Tensor):
            if result.dtype != self.torch.float32:
                return result
            is_leaf = result.is_leaf and result.requires_grad
            double = (result.detach() if is_leaf else result).double()
            return double.requires_grad_() if is_leaf else double
        if type(result) in (tuple, list):
            return type(result)(map(self.doubled, result))
        return result

    def parameter(self, parameter):
        """A parameter or buffer that a module registers, in double precision."""
        if parameter.dtype == self.torch.float32:
            parameter.data = parameter.data.double()
        return parameter

    def replaced(self, value, old, new):
        """A value with one dtype in place of another."""
        if value is old:
            return new
        if type(value) in (tuple, list):
            return type(value)(self.replaced(item, old, new) for item in value)
        if type(value) is dict:
            return {key: self.replaced(item, old, new) for key, item in value.items()}
        return value
