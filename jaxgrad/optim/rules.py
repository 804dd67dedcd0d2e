"""Update rules: the arithmetic of the optimizers, on lists of JAX arrays of one dtype.

A rule is a tuple of the options that decide which program computes it. The hyperparameters are
inputs of the program. A rule builds on optax where optax computes PyTorch's numbers; docstrings
name the exceptions. `numbers`: the hyperparameters that it reads; `states`: the state that it keeps
for each parameter; `counts`: whether it reads the number of steps, the current one included;
`elementwise`: whether it updates each element of a parameter by itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..late import LateModule

optax = LateModule("optax")  # only traces need it, and its import takes as long as many steps


def gradient_step(params, updates, rate):
    """Return `p - rate * u` for each parameter and update."""
    return [p - rate * update for p, update in zip(params, updates, strict=True)]


def decay(params, grads, rule, n):
    """Return the gradients, negated to maximize, plus the L2 penalty `weight_decay * p`."""
    grads = [-grad for grad in grads] if rule.maximize else grads
    if not rule.decays:
        return grads
    return optax.add_decayed_weights(n["weight_decay"]).update(grads, optax.EmptyState(), params)[0]


class SGDUpdate(NamedTuple):
    """The rule of `SGD`, on `optax.trace`.

    With dampening it is written out: the first buffer is the whole gradient, unlike in optax.
    """

    momentum: bool
    damped: bool
    nesterov: bool
    maximize: bool
    decays: bool
    elementwise = True
    counts = False

    @property
    def numbers(self):
        optional = (
            (self.decays, "weight_decay"),
            (self.momentum, "momentum"),
            (self.damped, "dampening"),
        )
        return ("lr", *[name for flag, name in optional if flag])

    @property
    def states(self):
        return ("momentum_buffer",) if self.momentum else ()

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self, n)
        if not self.momentum:
            return gradient_step(params, grads, n["lr"]), ()
        (buffers,) = state
        if self.damped:
            updates, buffers = self.dampen(grads, buffers, n)
        else:
            trace = optax.trace(n["momentum"], self.nesterov)
            updates, after = trace.update(grads, optax.TraceState(buffers))
            buffers = after.trace
        return gradient_step(params, updates, n["lr"]), (buffers,)

    def dampen(self, grads, buffers, n):
        """Return the updates and buffers with dampening."""
        if buffers[0] is None:
            buffers = grads
        else:
            pairs = zip(grads, buffers, strict=True)
            buffers = [n["momentum"] * b + (1 - n["dampening"]) * g for g, b in pairs]
        if not self.nesterov:
            return buffers, buffers
        return [g + n["momentum"] * b for g, b in zip(grads, buffers, strict=True)], buffers


class AdamUpdate(NamedTuple):
    """The rule of `Adam` and `AdamW`, on `optax.scale_by_adam`.

    AMSGrad is written out: PyTorch takes the maximum of the uncorrected second moments and corrects
    the bias afterwards, `optax.scale_by_amsgrad` the other way round.
    """

    amsgrad: bool
    decoupled: bool
    maximize: bool
    decays: bool
    elementwise = True
    counts = True

    @property
    def numbers(self):
        return "lr", "beta1", "beta2", "eps", *(("weight_decay",) if self.decays else ())

    @property
    def states(self):
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if self.amsgrad else ()))

    def update(self, params, grads, state, count, n):
        l2 = self._replace(decays=False) if self.decoupled else self
        grads, count = decay(params, grads, l2, n), count.astype(jnp.int32)
        if self.amsgrad:
            updates, state = self.amsgrad_updates(grads, state, count, n)
        else:
            adam = optax.scale_by_adam(n["beta1"], n["beta2"], n["eps"])
            before = optax.ScaleByAdamState(count - 1, *state)
            updates, after = adam.update(grads, before)
            state = after.mu, after.nu
        if self.decoupled:
            updates = decay(params, updates, self._replace(maximize=False), n)
        return gradient_step(params, updates, n["lr"]), state

    @staticmethod
    def amsgrad_updates(grads, state, count, n):
        """Return the updates and state of PyTorch's AMSGrad."""
        first, second, largest = state
        first = optax.tree.update_moment(grads, first, n["beta1"], 1)
        second = optax.tree.update_moment(grads, second, n["beta2"], 2)
        largest = [jnp.maximum(a, b) for a, b in zip(largest, second, strict=True)]
        means = optax.tree.bias_correction(first, n["beta1"], count)
        squares = optax.tree.bias_correction(largest, n["beta2"], count)
        pairs = zip(means, squares, strict=True)
        return [m / (jnp.sqrt(s) + n["eps"]) for m, s in pairs], (first, second, largest)


class RMSpropUpdate(NamedTuple):
    """The rule of `RMSprop`, on `optax.scale_by_rms` or `scale_by_stddev`, and `optax.trace`."""

    centered: bool
    momentum: bool
    maximize: bool
    decays: bool
    elementwise = True
    counts = True

    @property
    def numbers(self):
        optional = (self.decays, "weight_decay"), (self.momentum, "momentum")
        return ("lr", "alpha", "eps", *[name for flag, name in optional if flag])

    @property
    def states(self):
        optional = (self.momentum, "momentum_buffer"), (self.centered, "grad_avg")
        return ("square_avg", *[name for flag, name in optional if flag])

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self, n)
        kept = dict(zip(self.states, state, strict=True))
        if self.centered:
            scale = optax.scale_by_stddev(n["alpha"], n["eps"], eps_in_sqrt=False)
            before = optax.ScaleByRStdDevState(kept["grad_avg"], kept["square_avg"])
        else:
            scale = optax.scale_by_rms(n["alpha"], n["eps"], eps_in_sqrt=False)
            before = optax.ScaleByRmsState(kept["square_avg"])
        updates, after = scale.update(grads, before)
        kept["square_avg"] = after.nu
        if self.centered:
            kept["grad_avg"] = after.mu
        if self.momentum:
            trace = optax.trace(n["momentum"])
            updates, after = trace.update(updates, optax.TraceState(kept["momentum_buffer"]))
            kept["momentum_buffer"] = after.trace
        return gradient_step(params, updates, n["lr"]), tuple(kept.values())


class AdagradUpdate(NamedTuple):
    """The rule of `Adagrad`.

    It is written out: `optax.scale_by_rss` adds eps inside the root, and has no decay of the rate.
    """

    maximize: bool
    decays: bool
    elementwise = True
    counts = True

    @property
    def numbers(self):
        return ("lr", "lr_decay", "eps", *(("weight_decay",) if self.decays else ()))

    @property
    def states(self):
        return ("sum",)

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self, n)
        (sums,) = state
        sums = [s + g * g for s, g in zip(sums, grads, strict=True)]
        updates = [g / (jnp.sqrt(s) + n["eps"]) for g, s in zip(grads, sums, strict=True)]
        rate = n["lr"] / (1 + (count - 1) * n["lr_decay"])
        return gradient_step(params, updates, rate.astype(params[0].dtype)), (sums,)


class AdadeltaUpdate(NamedTuple):
    """The rule of `Adadelta`, on `optax.scale_by_adadelta`."""

    maximize: bool
    decays: bool
    elementwise = True
    counts = True
    states = ("square_avg", "acc_delta")

    @property
    def numbers(self):
        return ("lr", "rho", "eps", *(("weight_decay",) if self.decays else ()))

    def update(self, params, grads, state, count, n):
        scale = optax.scale_by_adadelta(n["rho"], n["eps"])
        before = optax.ScaleByAdaDeltaState(*state)
        updates, after = scale.update(decay(params, grads, self, n), before)
        return gradient_step(params, updates, n["lr"]), (after.e_g, after.e_x)


class AdamaxUpdate(NamedTuple):
    """The rule of `Adamax`, on `optax.scale_by_adamax`."""

    maximize: bool
    decays: bool
    elementwise = True
    counts = True
    states = ("exp_avg", "exp_inf")

    @property
    def numbers(self):
        return "lr", "beta1", "beta2", "eps", *(("weight_decay",) if self.decays else ())

    def update(self, params, grads, state, count, n):
        scale = optax.scale_by_adamax(n["beta1"], n["beta2"], n["eps"])
        before = optax.ScaleByAdamState(count.astype(jnp.int32) - 1, *state)
        updates, after = scale.update(decay(params, grads, self, n), before)
        return gradient_step(params, updates, n["lr"]), (after.mu, after.nu)


def decayed(params, grads, rule, n):
    """Return parameters and gradients after weight decay, which goes to the gradients, or if it is
    decoupled to the parameters; and the gradients negated to maximize.
    """
    if not rule.decoupled:
        return params, decay(params, grads, rule, n)
    kept = 1 - n["lr"] * n["weight_decay"]
    return [p * kept for p in params], decay(params, grads, rule._replace(decays=False), n)


class NAdamUpdate(NamedTuple):
    """The rule of `NAdam`.

    It is written out: `optax.scale_by_adam(nesterov=True)` has no decay of the momentum.
    """

    decoupled: bool
    maximize: bool
    decays: bool
    elementwise = True
    counts = True
    states = ("mu_product", "exp_avg", "exp_avg_sq")

    @property
    def numbers(self):
        optional = ("weight_decay",) if self.decays else ()
        return "lr", "beta1", "beta2", "eps", "momentum_decay", *optional

    def update(self, params, grads, state, count, n):
        params, grads = decayed(params, grads, self, n)
        products, first, second = state
        momentum, following = (
            n["beta1"] * (1 - 0.5 * 0.96 ** (step * n["momentum_decay"]))
            for step in (count, count + 1)
        )
        products = [product * momentum.astype(product.dtype) for product in products]
        first = optax.tree.update_moment(grads, first, n["beta1"], 1)
        second = optax.tree.update_moment(grads, second, n["beta2"], 2)
        squares = optax.tree.bias_correction(second, n["beta2"], count.astype(jnp.int32))
        new_params = []
        for p, g, m, square, product in zip(params, grads, first, squares, products, strict=True):
            product = product.astype(count.dtype)
            of_gradient = n["lr"] * (1 - momentum) / (1 - product)
            of_mean = n["lr"] * following / (1 - product * following)
            step = g * of_gradient.astype(p.dtype) + m * of_mean.astype(p.dtype)
            new_params.append(p - step / (jnp.sqrt(square) + n["eps"]))
        return new_params, (products, first, second)


class RAdamUpdate(NamedTuple):
    """The rule of `RAdam`.

    It is written out: `optax.scale_by_radam` adds eps after the correction of the bias.
    """

    decoupled: bool
    maximize: bool
    decays: bool
    elementwise = True
    counts = True
    states = ("exp_avg", "exp_avg_sq")

    @property
    def numbers(self):
        return "lr", "beta1", "beta2", "eps", *(("weight_decay",) if self.decays else ())

    def update(self, params, grads, state, count, n):
        params, grads = decayed(params, grads, self, n)
        first = optax.tree.update_moment(grads, state[0], n["beta1"], 1)
        second = optax.tree.update_moment(grads, state[1], n["beta2"], 2)
        means = optax.tree.bias_correction(first, n["beta1"], count.astype(jnp.int32))
        longest = 2 / (1 - n["beta2"]) - 1
        correction = 1 - n["beta2"] ** count
        length = longest - 2 * count * n["beta2"] ** count / correction
        is_rectified = length > 5
        # so that the branch that is not taken has finite derivatives
        length = jnp.where(is_rectified, length, 6)
        numerator = (length - 4) * (length - 2) * longest
        factor = jnp.sqrt(correction * numerator / ((longest - 4) * (longest - 2) * length))
        new_params = []
        for p, mean, square in zip(params, means, second, strict=True):
            root = jnp.sqrt(jnp.where(is_rectified, square, 1))
            scale = jnp.where(is_rectified, factor.astype(p.dtype) / (root + n["eps"]), 1)
            new_params.append(p - n["lr"] * mean * scale)
        return new_params, (first, second)


class RpropUpdate(NamedTuple):
    """The rule of `Rprop`.

    It is written out: `optax.scale_by_rprop` keeps the last step, PyTorch the last gradient, and
    limits no step size where the product of two gradients is zero.
    """

    maximize: bool
    elementwise = True
    counts = True
    decays = False
    numbers = ("eta_minus", "eta_plus", "smallest_step", "largest_step")
    states = ("prev", "step_size")

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self, n)
        new_params, kept, sizes = [], [], []
        for p, g, before, size in zip(params, grads, *state, strict=True):
            product = g * before
            factor = jnp.where(product < 0, n["eta_minus"], 1)
            factor = jnp.where(product > 0, n["eta_plus"], factor).astype(p.dtype)
            size = jnp.clip(size * factor, n["smallest_step"], n["largest_step"])
            g = jnp.where(product < 0, 0, g)
            # NaN has no sign, as in PyTorch
            new_params.append(p - size * (g > 0) + size * (g < 0))
            kept.append(g)
            sizes.append(size)
        return new_params, (kept, sizes)


class ASGDUpdate(NamedTuple):
    """The rule of `ASGD`, which optax lacks."""

    maximize: bool
    decays: bool
    elementwise = True
    counts = True
    states = ("eta", "mu", "ax")

    @property
    def numbers(self):
        return ("lr", "lambd", "alpha", "t0", *(("weight_decay",) if self.decays else ()))

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self, n)
        etas, shares, _ = state
        new_params, means = [], []
        for p, g, eta, share, mean in zip(params, grads, *state, strict=True):
            rate = eta.astype(count.dtype)
            p = p * (1 - n["lambd"] * rate).astype(p.dtype) - rate.astype(p.dtype) * g
            new_params.append(p)
            means.append(jnp.where(share == 1, p, mean + (p - mean) * share.astype(p.dtype)))
        eta = n["lr"] / (1 + n["lambd"] * n["lr"] * count) ** n["alpha"]
        share = 1 / jnp.maximum(1, count - n["t0"])
        etas = [eta.astype(before.dtype) for before in etas]
        shares = [share.astype(before.dtype) for before in shares]
        return new_params, (etas, shares, means)


class AdafactorUpdate(NamedTuple):
    """The rule of `Adafactor`, for parameters of several dimensions (`factored`) or of at most one.

    It is written out: optax adds eps to the squares, PyTorch takes maxima with it, and PyTorch
    limits the relative step by the learning rate.
    """

    factored: bool
    has_eps: bool
    maximize: bool
    decays: bool
    elementwise = False
    counts = True

    @property
    def numbers(self):
        optional = (self.has_eps, "eps1"), (self.decays, "weight_decay")
        names = [name for flag, name in optional if flag]
        return ("lr", "beta2_decay", "eps2", "d", *names)

    @property
    def states(self):
        return ("row_var", "col_var") if self.factored else ("variance",)

    def update(self, params, grads, state, count, n):
        grads = decay(params, grads, self._replace(decays=False), n)
        new_params, after = [], []
        for p, g, *kept in zip(params, grads, *state, strict=True):
            eps = n["eps1"] if self.has_eps else n["eps_of_dtype"]
            kept, variance = self.variance(
                g, kept, (count ** n["beta2_decay"]).astype(p.dtype), eps
            )
            update = g / jnp.sqrt(jnp.maximum(variance, eps * eps))
            relative = jnp.minimum(n["lr"], 1 / jnp.sqrt(count)).astype(p.dtype)
            # the greater one that is not NaN, as Python's max
            rate = jnp.fmax(n["eps2"], root_mean_square(p)) * relative
            if self.decays:
                p = p * (1 - n["lr"] * n["weight_decay"])
            new_params.append(p - rate / jnp.fmax(1, root_mean_square(update) / n["d"]) * update)
            after.append(kept)
        return new_params, tuple(zip(*after, strict=True))

    def variance(self, grad, kept, weight, eps):
        """Return the moving averages of squared gradients, and the estimate that they make."""
        axes = (-1, -2) if self.factored else ((),)
        squares = [jnp.mean(grad * grad, axis, keepdims=True) for axis in axes]
        kept = [old + weight * (new - old) for old, new in zip(kept, squares, strict=True)]
        if not self.factored:
            return kept, kept[0]
        rows, columns = kept
        return kept, rows * columns / jnp.maximum(jnp.mean(rows, -2, keepdims=True), eps)


def root_mean_square(array):
    """Return the root of the mean of the squares of all elements."""
    return jnp.sqrt(jnp.mean(array * array))


class MuonUpdate(NamedTuple):
    """The rule of `Muon`, on matrices.

    It is written out: `optax.contrib.muon` keeps the precision of the gradients and corrects the
    bias of the momentum, PyTorch makes them orthogonal in bfloat16.
    """

    nesterov: bool
    coefficients: tuple[float, ...]
    eps: float
    steps: int
    adjustment: str | None
    elementwise = False
    counts = False
    numbers = ("lr", "momentum", "weight_decay")
    states = ("momentum_buffer",)

    def update(self, params, grads, state, count, n):
        (buffers,) = state
        buffers = optax.tree.update_moment(grads, buffers, n["momentum"], 1)
        updates = buffers
        if self.nesterov:
            updates = optax.tree.update_moment(buffers, grads, 1 - n["momentum"], 1)
        new_params = []
        for p, update in zip(params, self.orthogonal(updates), strict=True):
            rate = n["lr"] * self.adjusted(*p.shape)
            p = p * (1 - n["lr"] * n["weight_decay"])
            new_params.append(p - rate * update.astype(p.dtype))
        return new_params, (buffers,)

    def adjusted(self, rows, columns):
        """Return the factor of the learning rate for a matrix."""
        if self.adjustment == "match_rms_adamw":
            return 0.2 * math.sqrt(max(rows, columns))
        return math.sqrt(max(1, rows / columns))

    def orthogonal(self, matrices):
        """Return matrices near the orthogonal factors of polar decompositions, in bfloat16, by
        Newton-Schulz iterations.

        They are a loop, which compiles faster than a copy for each iteration. Stacking matrices of
        one shape was tried: XLA makes the stack anew for each of them, which takes even longer.
        """
        a, b, c = self.coefficients

        def improved(_, matrices):
            iterates = []
            for x in matrices:
                gram = _rounded(_product(x, x.T))
                change = _rounded(b * gram.astype(jnp.float32) + c * _product(gram, gram))
                iterates.append(_rounded(a * x.astype(jnp.float32) + _product(change, x)))
            return iterates

        start = [self.normalized(x if x.shape[0] <= x.shape[1] else x.T) for x in matrices]
        factors = jax.lax.fori_loop(0, self.steps, improved, start)
        return [x if x.shape == y.shape else x.T for x, y in zip(factors, matrices, strict=True)]

    def normalized(self, matrix):
        """Return a matrix over its Frobenius norm, in bfloat16."""
        x = _rounded(matrix).astype(jnp.float32)
        norm = _rounded(jnp.sqrt(jnp.sum(jnp.square(x)))).astype(jnp.float32)
        return _rounded(x / jnp.maximum(norm, self.eps))


def _rounded(array):
    """Cast to bfloat16, in a way that XLA does not leave out between two casts."""
    return jax.lax.reduce_precision(array, 8, 7).astype(jnp.bfloat16)


def _product(left, right):
    """Multiply matrices of bfloat16; the result is float32."""
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


class SparseAdamUpdate(NamedTuple):
    """The rule of `SparseAdam`, which `sparse_step.adam` computes; none for dense gradients."""

    maximize: bool
    counts, numbers = True, ("lr", "beta1", "beta2", "eps")
    states = ("exp_avg", "exp_avg_sq")

    def update(self, params, grads, state, count, n):
        """Raises RuntimeError."""
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )


Update = (
    SGDUpdate
    | AdamUpdate
    | RMSpropUpdate
    | AdagradUpdate
    | AdadeltaUpdate
    | AdamaxUpdate
    | NAdamUpdate
    | RAdamUpdate
    | RpropUpdate
    | ASGDUpdate
    | AdafactorUpdate
    | MuonUpdate
    | SparseAdamUpdate
)
