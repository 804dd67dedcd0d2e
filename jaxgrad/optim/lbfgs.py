"""L-BFGS, with an optional line search."""

from __future__ import annotations

import jax.numpy as jnp

from .. import ops
from ..autograd.grad_mode import enable_grad, no_grad
from ..core import executor
from ..core.aval import joint_mode
from ..core.bounded_cache import bounded
from ..core.missing_names import missing_in
from ..core.program import Program
from ..tape import mode
from ..tape.record import apply
from ..tape.tensor import Tensor, current
from .line_search import LineSearch, Point
from .optimizer import Optimizer
from .options import check_rate

UNDER_JIT = (
    "LBFGS.step cannot be traced by jaxgrad.jit: the number of evaluations depends on values. "
    "Compile the closure, and call step outside"
)


class Correction(Program):
    """One step of the two-loop recursion on a direction: adds a change of the history, times a
    factor less its product with the direction along another change. One program in place of four
    operators, since the history has up to 100 of these steps.

    Inputs: direction, the change it is multiplied with, the one that is added, the inverse
    curvature, and the factor. Outputs: the product, and the corrected direction.
    """

    name = "LBFGSCorrection"
    defers = True

    def __init__(self, inputs):
        self.inputs, self.mode = inputs, joint_mode(self.name, inputs)

    def function(self, direction, along, change, inverse, factor):
        product = jnp.vdot(along, direction) * inverse
        return product, direction + change * (factor - product)


@bounded(Program.weight)
def _correction(*inputs) -> Correction:
    return executor.prepare(Correction(inputs))


def corrected(*leaves) -> tuple[Tensor, Tensor]:
    """The results of a `Correction` for its inputs, a number as the factor."""
    leaves = [current(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    kinds = [leaf._aval if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves]
    return apply(_correction(*kinds), leaves)


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps `p = p - t * H @ grad`.

    `H` approximates the inverse Hessian from the last `history_size` changes of parameters and
    gradients. It runs operator by operator: the closure may be compiled, `step` may not be.

    params: one group. lr: the initial step size. max_iter, max_eval: limits on iterations and
    evaluations in one call of `step`; max_eval is `max_iter * 5 / 4` by default. tolerance_grad:
    the largest gradient entry of a minimum; tolerance_change: the smallest change of parameters or
    loss. line_search_fn: None or "strong_wolfe". State, of the first parameter: `n_iter`,
    `func_evals`, `prev_loss`, `t`, the flat tensors `d` and `prev_flat_grad`, the lists `old_dirs`
    and `old_stps`. Raises ValueError for several groups, RuntimeError under `jaxgrad.jit`. Source:
    Nocedal and Wright, "Numerical Optimization", 2006, algorithms 7.4 and 7.5.

    >>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = jaxgrad.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> x.detach().round()
    tensor([3., 3.])
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_rate(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @no_grad()
    def step(self, closure):
        """Minimize until a limit or tolerance is reached, and return the first loss.

        closure: clears the gradients, evaluates the loss, calls `backward()` and returns the loss.
        Raises RuntimeError under `jaxgrad.jit`.
        """
        if mode.scope.get() is not None:
            raise RuntimeError(UNDER_JIT)
        (group,) = self.param_groups
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        run = _Run(group, state, enable_grad()(closure))
        if run.is_stationary():
            return run.first
        run.minimize()
        return run.first


class _Run:
    """One call of `step`: the current `loss`, `gradient` and number of `evaluations`."""

    def __init__(self, group, state, closure):
        self.group, self.state, self.closure = group, state, closure
        self.params, self.evaluations = group["params"], 0
        self.first = self.evaluate()

    def evaluate(self):
        loss = self.closure()
        if loss is None:
            raise TypeError(
                "LBFGS.step(closure): the closure returned None: it must return the loss"
            )
        self.loss = loss.item() if isinstance(loss, Tensor) else float(loss)
        self.gradient = self.flat_gradient()
        self.evaluations += 1
        self.state["func_evals"] += 1
        return loss

    def is_stationary(self) -> bool:
        return self.gradient.abs().max().item() <= self.group["tolerance_grad"]

    def minimize(self):
        group, state, done = self.group, self.state, 0
        while done < group["max_iter"]:
            done += 1
            state["n_iter"] += 1
            state["d"] = direction = self.direction()
            state["prev_flat_grad"], state["prev_loss"] = self.gradient.clone(), self.loss
            state["t"] = t = self.initial_step_size()
            slope = self.gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            before = self.loss
            if group["line_search_fn"] is not None:
                state["t"] = t = self.search(t, direction, slope)
                stationary = self.is_stationary()
            else:
                self.move(t, direction)
                stationary = False
                if done != group["max_iter"]:
                    self.evaluate()
                    stationary = self.is_stationary()
            if self.evaluations >= group["max_eval"] or stationary or done == group["max_iter"]:
                break
            if (direction * t).abs().max().item() <= group["tolerance_change"]:
                break
            if abs(self.loss - before) < group["tolerance_change"]:
                break

    # ---- the direction

    def direction(self) -> Tensor:
        """Return `-H @ gradient` by the two-loop recursion."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return self.gradient.neg()
        self.update_history()
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        alphas = state.setdefault("al", [None] * self.group["history_size"])
        result = self.gradient.neg()
        for i in reversed(range(len(changes))):
            alphas[i], result = corrected(result, steps[i], changes[i], inverses[i], 0.0)
        result = result * state["H_diag"]
        for i, change in enumerate(changes):
            _, result = corrected(result, change, steps[i], inverses[i], alphas[i])
        return result

    def update_history(self):
        """Add the last step to the history if the curvature along it is positive."""
        state = self.state
        change = self.gradient - state["prev_flat_grad"]
        step = state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature.item() <= 1e-10:
            return
        for name, value in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
            if len(state[name]) == self.group["history_size"]:
                state[name].pop(0)
            state[name].append(value)
        state["H_diag"] = curvature / change.dot(change)

    def initial_step_size(self) -> float:
        rate = float(self.group["lr"])
        if self.state["n_iter"] > 1:
            return rate
        return min(1.0, 1.0 / self.gradient.abs().sum().item()) * rate

    def search(self, t, direction, slope) -> float:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError(
                f"only 'strong_wolfe' is supported, not {self.group['line_search_fn']!r}"
            )
        begin = [param.clone() for param in self.params]
        start = Point(0.0, self.loss, self.gradient, slope)
        limit = self.group["max_eval"] - self.evaluations

        def evaluate(t):
            self.move(t, direction)
            self.evaluate()
            for param, value in zip(self.params, begin, strict=True):
                param.copy_(value)
            return Point(t, self.loss, self.gradient, self.gradient.dot(direction).item())

        reach = direction.abs().max().item()
        point = LineSearch(evaluate, start, limit, reach, self.group["tolerance_change"]).run(t)
        self.loss, self.gradient = point.loss, point.gradient
        self.move(point.t, direction)
        return point.t

    # ---- parameters as one vector

    def flat_gradient(self) -> Tensor:
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in self.params]
        return ops.cat([_flat(grad) for grad in grads])

    def move(self, t, direction):
        begin = 0
        for param in self.params:
            size = param.numel() * (1 + param.dtype.is_complex)
            piece = direction[begin : begin + size]
            begin += size
            if param.dtype.is_complex:
                piece = ops.view_as_complex(piece.reshape(-1, 2))
            param.add_(piece.reshape(param.shape), alpha=t)


def _flat(grad):
    if grad.dtype.is_complex:
        grad = ops.view_as_real(grad)
    return grad.detach().reshape(-1)


__getattr__ = missing_in(__name__)
