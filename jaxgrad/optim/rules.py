"""The arithmetic of the optimizers, on lists of JAX arrays of one dtype.

Each rule is a tuple of what of a parameter group decides which program computes it; the numbers of
the group are data. It stands on optax where optax comes to PyTorch's numbers, and says where not.
`numbers`: the entries of the group that it reads; `states`: what it keeps for each parameter;
`counts`: whether it reads how many steps have been made, this one included.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import optax


def descend(params, updates, rate):
    """Parameters after a step against the updates."""
    return [p - rate * update for p, update in zip(params, updates, strict=True)]


def decayed(params, grads, rule, n):
    """The gradients as a rule takes them: turned round to maximize, and with the L2 penalty."""
    grads = [-grad for grad in grads] if rule.maximize else grads
    if not rule.decays:
        return grads
    return optax.add_decayed_weights(n["weight_decay"]).update(grads, optax.EmptyState(), params)[0]


class SGD(NamedTuple):
    """`optax.trace`. With dampening the first buffer is the whole gradient, which optax cannot say:
    that is written here.
    """

    momentum: bool
    damped: bool
    nesterov: bool
    maximize: bool
    decays: bool
    counts = False

    @property
    def numbers(self):
        kinds = (
            (self.decays, "weight_decay"),
            (self.momentum, "momentum"),
            (self.damped, "dampening"),
        )
        return ("lr", *[name for flag, name in kinds if flag])

    @property
    def states(self):
        return ("momentum_buffer",) if self.momentum else ()

    def update(self, params, grads, state, count, n):
        grads = decayed(params, grads, self, n)
        if not self.momentum:
            return descend(params, grads, n["lr"]), ()
        (buffers,) = state
        if self.damped:
            updates, buffers = self.damp(grads, buffers, n)
        else:
            trace = optax.trace(n["momentum"], self.nesterov)
            updates, after = trace.update(grads, optax.TraceState(buffers))
            buffers = after.trace
        return descend(params, updates, n["lr"]), (buffers,)

    def damp(self, grads, buffers, n):
        if buffers[0] is None:
            buffers = grads
        else:
            pairs = zip(grads, buffers, strict=True)
            buffers = [n["momentum"] * b + (1 - n["dampening"]) * g for g, b in pairs]
        if not self.nesterov:
            return buffers, buffers
        return [g + n["momentum"] * b for g, b in zip(grads, buffers, strict=True)], buffers


class Adam(NamedTuple):
    """`optax.scale_by_adam`. PyTorch's AMSGrad keeps the largest second moment as it is, and
    corrects its bias afterwards, where `optax.scale_by_amsgrad` keeps the corrected one: that is
    written here.
    """

    amsgrad: bool
    decoupled: bool
    maximize: bool
    decays: bool
    counts = True

    @property
    def numbers(self):
        return "lr", "beta1", "beta2", "eps", *(("weight_decay",) if self.decays else ())

    @property
    def states(self):
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if self.amsgrad else ()))

    def update(self, params, grads, state, count, n):
        plain = self._replace(decays=False) if self.decoupled else self
        grads, count = decayed(params, grads, plain, n), count.astype(jnp.int32)
        if self.amsgrad:
            updates, state = self.largest(grads, state, count, n)
        else:
            adam = optax.scale_by_adam(n["beta1"], n["beta2"], n["eps"])
            before = optax.ScaleByAdamState(count - 1, *state)
            updates, after = adam.update(grads, before)
            state = after.mu, after.nu
        if self.decoupled:
            updates = decayed(params, updates, self._replace(maximize=False), n)
        return descend(params, updates, n["lr"]), state

    @staticmethod
    def largest(grads, state, count, n):
        first, second, largest = state
        first = optax.tree.update_moment(grads, first, n["beta1"], 1)
        second = optax.tree.update_moment(grads, second, n["beta2"], 2)
        largest = [jnp.maximum(a, b) for a, b in zip(largest, second, strict=True)]
        means = optax.tree.bias_correction(first, n["beta1"], count)
        squares = optax.tree.bias_correction(largest, n["beta2"], count)
        pairs = zip(means, squares, strict=True)
        return [m / (jnp.sqrt(s) + n["eps"]) for m, s in pairs], (first, second, largest)


class RMSprop(NamedTuple):
    """`optax.scale_by_rms`, or `scale_by_stddev` where centered, with eps outside of the root, and
    then `optax.trace`.
    """

    centered: bool
    momentum: bool
    maximize: bool
    decays: bool
    counts = True

    @property
    def numbers(self):
        kinds = (self.decays, "weight_decay"), (self.momentum, "momentum")
        return ("lr", "alpha", "eps", *[name for flag, name in kinds if flag])

    @property
    def states(self):
        kinds = (self.momentum, "momentum_buffer"), (self.centered, "grad_avg")
        return ("square_avg", *[name for flag, name in kinds if flag])

    def update(self, params, grads, state, count, n):
        grads = decayed(params, grads, self, n)
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
        return descend(params, updates, n["lr"]), tuple(kept.values())


class Adagrad(NamedTuple):
    """Written here: `optax.scale_by_rss` has eps inside of the root, and no decay of the rate."""

    maximize: bool
    decays: bool
    counts = True

    @property
    def numbers(self):
        return ("lr", "lr_decay", "eps", *(("weight_decay",) if self.decays else ()))

    @property
    def states(self):
        return ("sum",)

    def update(self, params, grads, state, count, n):
        grads = decayed(params, grads, self, n)
        (sums,) = state
        sums = [s + g * g for s, g in zip(sums, grads, strict=True)]
        updates = [g / (jnp.sqrt(s) + n["eps"]) for g, s in zip(grads, sums, strict=True)]
        rate = n["lr"] / (1 + (count - 1) * n["lr_decay"])
        return descend(params, updates, rate.astype(params[0].dtype)), (sums,)
