"""Functions of torch.special that PyTorch does not differentiate, with the derivatives of mpmath.

Their values are PyTorch's but for those of `INACCURATE`, which are off by up to 1e-6 there, and
mpmath's here. STAND_INS has them by name.
"""

import mpmath
import torch

mpmath.mp.dps = 40

INACCURATE = {"bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai"}


def third_kind(n, x):
    return mpmath.chebyu(n, x) - mpmath.chebyu(n - 1, x)


def fourth_kind(n, x):
    return mpmath.chebyu(n, x) + mpmath.chebyu(n - 1, x)


def of_probabilists(n, x):
    return mpmath.hermite(n, x / mpmath.sqrt(2)) / mpmath.sqrt(2) ** n


def shifted(function):
    return lambda n, x: function(n, 2 * x - 1)


def of_degree(function):
    """A polynomial as a function of x and a degree, which may be negative."""
    return lambda x, n: function(int(n), x) if n >= 0 else mpmath.mpf(0)


KINDS = {"t": mpmath.chebyt, "u": mpmath.chebyu, "v": third_kind, "w": fourth_kind}
DEGREES = {
    **{f"chebyshev_polynomial_{kind}": of_degree(f) for kind, f in KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{k}": of_degree(shifted(f)) for k, f in KINDS.items()},
    "hermite_polynomial_h": of_degree(mpmath.hermite),
    "hermite_polynomial_he": of_degree(of_probabilists),
    "laguerre_polynomial_l": of_degree(lambda n, x: mpmath.laguerre(n, 0, x)),
    "legendre_polynomial_p": of_degree(mpmath.legendre),
}
ORDERS = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_i0": lambda x: mpmath.besseli(0, x),
    "modified_bessel_i1": lambda x: mpmath.besseli(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.exp(x) * mpmath.besselk(0, x),
    "scaled_modified_bessel_k1": lambda x: mpmath.exp(x) * mpmath.besselk(1, x),
    "spherical_bessel_j0": mpmath.sinc,
    "airy_ai": mpmath.airyai,
}
# operators of jaxgrad alone, which are derivatives of others
OWN = {
    "_airy_ai_derivative": lambda x: mpmath.airyai(x, derivative=1),
    "_gegenbauer_polynomial": lambda x, n, alpha: mpmath.gegenbauer(n, alpha, x),
    "_laguerre_polynomial": lambda x, n, alpha: mpmath.laguerre(n, alpha, x),
}
EXACT = DEGREES | ORDERS | OWN


def element_wise(function, *tensors):
    """A tensor of a function's values, which mpmath computes."""
    spread = torch.broadcast_tensors(*tensors)
    columns = zip(*(tensor.flatten().tolist() for tensor in spread), strict=True)
    values = [float(mpmath.re(function(*map(mpmath.mpf, column)))) for column in columns]
    return torch.tensor(values, dtype=tensors[0].dtype).reshape(spread[0].shape)


class Exact(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, x, *degree):
        ctx.function = name
        ctx.save_for_backward(x, *degree)
        if name in INACCURATE or name in OWN:
            return element_wise(EXACT[name], x, *degree)
        return getattr(torch.special, name)(x, *degree)

    @staticmethod
    def backward(ctx, grad):
        x, *degree = ctx.saved_tensors

        def slope(at, *degree):
            return mpmath.diff(lambda x: EXACT[ctx.function](x, *degree), at)

        gradient = (grad * element_wise(slope, x, *degree)).sum_to_size(x.shape)
        return None, gradient, *[None] * len(degree)


def stand_in(name):
    def call(x, *degree):
        # PyTorch's own dtypes of integers and numbers
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return getattr(torch.special, name)(x, *degree)
        return Exact.apply(name, x, *map(torch.as_tensor, degree))

    return call


def hardsigmoid(x):
    # the slope of PyTorch's is the 1 / 6 of float32
    return torch.nn.functional.relu6(x + 3) / 6


PYTORCH_HAS = {f"special.{name}": stand_in(name) for name in DEGREES | ORDERS}
PYTORCH_HAS["nn.functional.hardsigmoid"] = hardsigmoid
STAND_INS = PYTORCH_HAS | {f"ops.{name}": stand_in(name) for name in OWN}
