"""L-BFGS, with an optional line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..autograd.grad_mode import enable_grad, no_grad
from ..names.missing import missing_in
from ..tape import mode
from ..tape.tensor import Tensor
from .lbfgs_vectors import vectors_of
from .line_search import LineSearch, Point
from .optimizer import Optimizer
from .options import Loss, Params, Rate, check_rate

UNDER_JIT = (
    "LBFGS.step cannot be traced by jaxgrad.jit: the number of evaluations depends on values. "
    "Compile the closure, and call step outside"
)


# the vectors of the state
VECTORS = "d", "prev_flat_grad", "old_dirs", "old_stps", "ro", "H_diag", "al"


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
        params: Params,
        lr: Rate = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: Literal["strong_wolfe"] | None = None,
    ):
        check_rate(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @no_grad()
    def step(self, closure: Callable[[], Loss]) -> Loss:
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
        try:
            with np.errstate(all="ignore"):
                if not run.is_stationary():
                    run.minimize()
        finally:
            run.keep()
        return run.first


class _Run:
    """One call of `step`: the current `loss`, `gradient` and number of `evaluations`.

    vectors: how to compute with them (lbfgs_vectors.py); memory: those of the state.
    """

    def __init__(self, group, state, closure):
        self.group, self.state, self.closure = group, state, closure
        self.vectors, self.evaluations = vectors_of(group["params"]), 0
        self.errors = np.geterr()  # those of the user, for the closure
        kept = {name: state[name] for name in VECTORS if name in state}
        self.memory = {name: self.vectors.of_state(value) for name, value in kept.items()}
        self.first = self.evaluate()

    def keep(self):
        """Write the vectors into the state, as tensors."""
        for name, value in self.memory.items():
            self.state[name] = self.vectors.of_vectors(value)

    def evaluate(self):
        with np.errstate(**self.errors):
            loss = self.closure()
        if loss is None:
            raise TypeError(
                "LBFGS.step(closure): the closure returned None: it must return the loss"
            )
        self.loss = loss.item() if isinstance(loss, Tensor) else float(loss)
        self.gradient = self.vectors.gradient()
        self.evaluations += 1
        self.state["func_evals"] += 1
        return loss

    def is_stationary(self) -> bool:
        return abs(self.gradient).max().item() <= self.group["tolerance_grad"]

    def minimize(self):
        group, state, memory, done = self.group, self.state, self.memory, 0
        while done < group["max_iter"]:
            done += 1
            state["n_iter"] += 1
            memory["d"] = direction = self.direction()
            memory["prev_flat_grad"], state["prev_loss"] = self.gradient, self.loss
            state["t"] = t = self.initial_step_size()
            slope = self.gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            before = self.loss
            if group["line_search_fn"] is not None:
                state["t"] = t = self.search(t, direction, slope)
                stationary = self.is_stationary()
            else:
                self.vectors.move(t, direction)
                stationary = False
                if done != group["max_iter"]:
                    self.evaluate()
                    stationary = self.is_stationary()
            if self.evaluations >= group["max_eval"] or stationary or done == group["max_iter"]:
                break
            if abs(direction * t).max().item() <= group["tolerance_change"]:
                break
            if abs(self.loss - before) < group["tolerance_change"]:
                break

    # ---- the direction

    def direction(self) -> Tensor:
        """Return `-H @ gradient` by the two-loop recursion."""
        memory, corrected = self.memory, self.vectors.corrected
        if self.state["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -self.gradient
        self.update_history()
        changes, steps, inverses = memory["old_dirs"], memory["old_stps"], memory["ro"]
        alphas = memory.setdefault("al", [None] * self.group["history_size"])
        result = -self.gradient
        for i in reversed(range(len(changes))):
            alphas[i], result = corrected(result, steps[i], changes[i], inverses[i], 0.0)
        result = result * memory["H_diag"]
        for i, change in enumerate(changes):
            _, result = corrected(result, change, steps[i], inverses[i], alphas[i])
        return result

    def update_history(self):
        """Add the last step to the history if the curvature along it is positive."""
        memory = self.memory
        change = self.gradient - memory["prev_flat_grad"]
        step = memory["d"] * self.state["t"]
        curvature = change.dot(step)
        if curvature.item() <= 1e-10:
            return
        for name, value in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
            if len(memory[name]) == self.group["history_size"]:
                memory[name].pop(0)
            memory[name].append(value)
        memory["H_diag"] = curvature / change.dot(change)

    def initial_step_size(self) -> float:
        rate = float(self.group["lr"])
        if self.state["n_iter"] > 1:
            return rate
        total = abs(self.gradient).sum().item()
        return rate if total <= 1.0 else rate / total  # also for a gradient of zeros

    def search(self, t, direction, slope) -> float:
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError(
                f"only 'strong_wolfe' is supported, not {self.group['line_search_fn']!r}"
            )
        vectors, begin = self.vectors, self.vectors.values()
        start = Point(0.0, self.loss, self.gradient, slope)
        limit = self.group["max_eval"] - self.evaluations

        def evaluate(t):
            vectors.move(t, direction)
            self.evaluate()
            vectors.restore(begin)
            return Point(t, self.loss, self.gradient, self.gradient.dot(direction).item())

        reach = abs(direction).max().item()
        point = LineSearch(evaluate, start, limit, reach, self.group["tolerance_change"]).run(t)
        self.loss, self.gradient = point.loss, point.gradient
        vectors.move(point.t, direction)
        return point.t


__getattr__ = missing_in(__name__)
