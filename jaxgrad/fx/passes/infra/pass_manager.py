"""Passes in order, as torch.fx.passes.infra.pass_manager."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps

from ....names.not_provided import names_of
from ....nn.module import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

__getattr__, __dir__ = names_of(__name__)


def pass_result_wrapper(fn: Callable) -> Callable:
    """Return a pass of a function that changes a module and returns None, or says if it did.

    >>> from jaxgrad.fx.passes.infra.pass_manager import pass_result_wrapper
    >>> pass_result_wrapper(lambda module: None)(jaxgrad.fx.symbolic_trace(lambda x: x)).modified
    True
    """

    @wraps(fn)
    def wrapped(gm):
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, Module) else gm, True)

    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """Return the rule for two passes that the first comes before the second.

    >>> from jaxgrad.fx.passes.infra.pass_manager import this_before_that_pass_constraint
    >>> this_before_that_pass_constraint(len, max)(max, len)
    False
    """

    def is_kept(before: Callable, after: Callable) -> bool:
        return before is not that or after is not this

    return is_kept


class PassManager:
    """Runs passes in order, several times where they still change something.

    passes: functions that return a PassResult; constraints: rules for pairs of passes, by which
    they are sorted; steps: how many times at most; run_checks_after_each_pass: `lint` the graph;
    suppress_check_failures: do not raise where rules contradict one another.

    >>> from jaxgrad.fx.passes.infra.pass_manager import PassManager, PassResult
    >>> manager = PassManager([lambda module: PassResult(module, False)])
    >>> manager(jaxgrad.fx.symbolic_trace(lambda x: x)).modified
    False
    """

    passes: list[Callable]
    constraints: list[Callable]
    steps: int = 1

    def __init__(
        self,
        passes: list[Callable] | None = None,
        constraints: list[Callable] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ):
        self.passes, self.constraints = list(passes or ()), list(constraints or ())
        self.steps = steps or 1
        self._validated = False
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_pass(self, _pass: Callable):
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable):
        """Add a rule for pairs of passes."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """Raise RuntimeError where the order of the passes breaks a rule."""
        for position, later in enumerate(self.passes):
            for earlier in self.passes[:position]:
                if not all(rule(earlier, later) for rule in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated: {earlier} comes before {later}"
                    )
        self._validated = True

    def solve_constraints(self):
        """Sort the passes by the rules. Raises RuntimeError where these contradict one another."""
        left, ordered = list(self.passes), []
        while left:
            free = (
                one
                for one in left
                if all(rule(one, o) for rule in self.constraints for o in left if o is not one)
            )
            first = next(free, None)
            if first is None and not self.suppress_check_failures:
                raise RuntimeError(f"Circular dependency detected among the passes {left}")
            ordered.append(left[0] if first is None else first)
            left.remove(ordered[-1])
        self.passes, self._validated = ordered, True

    def add_checks(self, check: Callable) -> None:
        """Let `check(module)` run between passes."""
        if list(inspect.signature(check).parameters) != ["module"]:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: Module) -> None:
        """Check the module between passes."""

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        modified = False
        for _ in range(self.steps):
            module, is_changed = self._run(module)
            modified = modified or is_changed
            if not is_changed:
                break
        return PassResult(module, modified)

    def _run(self, module) -> tuple[Module, bool]:
        """Run all passes once."""
        is_changed = False
        for one in self.passes:
            result = one(module)
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"The result of the pass {one} should be type PassResult. Please wrap it with "
                    "pass_result_wrapper()"
                )
            module, is_changed = result.graph_module, is_changed or result.modified
            if isinstance(module, GraphModule):
                module.recompile()
            if self.run_checks_after_each_pass:
                self.check(module)
        return module, is_changed
