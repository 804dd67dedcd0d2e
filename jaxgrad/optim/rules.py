"""Update rules: the arithmetic of the optimizers, on lists of JAX arrays of one dtype.

A rule is a tuple of the options that decide which program computes it. The hyperparameters are
inputs of the program. A rule builds on optax where optax computes PyTorch's numbers; docstrings
name the exceptions. `numbers`: the hyperparameters that it reads; `states`: the state that it keeps
for each parameter; `counts`: whether it reads the number of steps, the current one included.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import optax


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
