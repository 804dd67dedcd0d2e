"""`autograd.graph.explain`: why the gradient of a tensor is None, zero or NaN."""

from __future__ import annotations

import sys

from ...core.aval import has_numbers
from ...core.pytorch_tensors import type_name
from ...tape import source_location, untracked_reason
from ...tape.node import AccumulateGrad
from ...tape.sparse_tensor import is_sparse
from ...tape.tensor import (
    INFERENCE_TENSOR,
    LeafState,
    Tensor,
    current,
    grad_of,
    is_tracked,
    known_edge_of,
    known_leaf_state,
    may_require_grad,
    node_or_mark,
)
from .gradient_probe import (
    ALIVE,
    CANCELLED,
    FREED,
    NAN,
    NAN_SUM,
    TRACED,
    UNDEFINED,
    UNKNOWN,
    ZERO,
    has_nans,
    is_alive,
    probe,
)
from .graph_reader import Names, kept_by, nodes_of, place_of, roots_of, shown_place, variables_of
from .zero_gradients import reason

# the kinds of an explanation, beside those of `untracked_reason` and `gradient_probe`
DTYPE, CONSTANT, NOT_A_LEAF, UNUSED, UNREACHED = (
    "dtype",
    "constant",
    "not a leaf",
    "unused",
    "unreached",
)
FILLED, HOOKS = "filled", "hooks"

AGAIN = "Run it again under autograd.graph.record_lines() to see the line"
OTHER_NANS = "they come from another pass, or from a gradient that was given to backward()"
TRACING = "there are no numbers yet in a trace, and none on the device meta"


class Explanation:
    """The reason why a gradient is None, zero or NaN; prints as sentences.

    kind: the first cause, as a word.
    place: its source line, None if it is unknown.
    sentences: the sentences, in order.
    """

    def __init__(self):
        self.kind: str | None = None
        self.place: str | None = None
        self.sentences: list[str] = []

    def say(self, sentence: str, kind: str | None = None, place: str | None = None):
        """Add a sentence; the first one with a kind sets `kind` and `place`."""
        self.sentences.append(sentence)
        if self.kind is None and kind is not None:
            self.kind, self.place = kind, place

    def __str__(self):
        return "\n".join(f"{sentence}." for sentence in self.sentences)

    __repr__ = __str__


def explain(tensor: Tensor, loss=None) -> Explanation:
    """Say why the gradient of a tensor is None, zero or NaN, or what a backward pass from `loss`
    gives it.

    tensor: a tensor of any shape and dtype.
    loss: the tensor that was or will be differentiated, a GradientEdge, or a list of them. With it
        the answer says whether the graph leads from the loss to the tensor, where it was cut off,
        and which operator makes the gradient zero, or its first NaN. For that the nodes between
        the two run once more, with the `backward` of Functions but without hooks. No `.grad`
        changes and no saved value is freed.

    Returns an Explanation. The source line of a cut is known for code that ran under
    `record_lines()`. Raises TypeError for an object that is not a tensor.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.no_grad():
    ...     y = x * 2
    >>> jaxgrad.autograd.graph.explain(y).kind
    'constant'
    >>> print(jaxgrad.autograd.graph.explain(x, (x - 3).relu().sum()))
    The gradient of x is zero: it becomes zero in ReluBackward0 (it is flat at all of its inputs).
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"explain() takes a tensor, but got {type_name(tensor)}")
    names = Names(variables_of(sys._getframe(1)))
    name = names.of_tensor(tensor) or f"the tensor of shape {list(tensor.shape)}"
    return _Explainer(current(tensor), name, loss).tell()


class _Explainer:
    """Finds the reasons for one tensor."""

    def __init__(self, tensor, name, loss):
        self.tensor, self.name, self.loss = tensor, name, loss
        self.explanation = Explanation()

    def tell(self) -> Explanation:
        if not may_require_grad(self.tensor):
            why = f"its dtype, {self.tensor.dtype}, is neither floating point nor complex"
            self.explanation.say(f"{self.name} has no gradient: {why}")
            self.tell_causes(untracked_reason.of(self.tensor), DTYPE)
        elif not is_tracked(self.tensor):
            self.tell_constant()
        elif self.loss is None:
            self.tell_alone()
        else:
            self.tell_with_loss()
        return self.explanation

    def tell_constant(self):
        """The tensor does not require grad."""
        self.explanation.say(f"{self.name} does not require grad: no operator on it is recorded")
        causes = untracked_reason.of(self.tensor)
        if node_or_mark(self.tensor) is INFERENCE_TENSOR and not causes:
            self.explanation.say("It was made in inference mode", untracked_reason.INFERENCE_MODE)
        self.tell_causes(causes, CONSTANT)
        if causes:
            return
        leaf = _known_leaf(self.tensor)
        if leaf is not None:
            self.explanation.say(
                f"It is a {leaf} with requires_grad=False: call requires_grad_() on it before "
                "using it"
            )
            return
        self.explanation.say(
            "If it is a leaf, call requires_grad_() before using it. If it was computed from "
            f"tensors that require grad, it was cut off from them {_unseen_cut()}"
        )

    def tell_causes(self, causes, otherwise):
        """Name causes of a missing graph; without one the kind is `otherwise`."""
        for cause in causes:
            self.explanation.say(_sentence(cause), cause.kind, cause.place)
        self.explanation.kind = self.explanation.kind or otherwise

    def tell_alone(self):
        """The tensor requires grad, and no loss was given."""
        if self.tell_grad(_grad_of(self.tensor)):
            return
        if node_or_mark(self.tensor) is not None:
            self.tell_not_a_leaf()
        elif not _is_used(self.tensor):
            self.explanation.say(
                f"{self.name} has no gradient: no graph that still exists contains a tensor that "
                "was computed from it",
                UNUSED,
            )
        else:
            self.explanation.say(
                f"{self.name} has no gradient: it is in a graph, but no backward() has reached it, "
                "or its .grad was set to None afterwards",
                UNREACHED,
            )
        self.explanation.say(f"explain({self.name}, loss) says whether a loss leads to {self.name}")

    def tell_grad(self, grad) -> bool:
        """Describe `.grad`; returns whether there is one."""
        if grad is None:
            return False
        grad = grad.coalesce().values() if is_sparse(grad) else grad
        if not has_numbers(grad._array):
            self.explanation.say(f"{self.name} has a gradient, but {TRACING}", FILLED)
            return True
        if has_nans(grad):
            more = " or explain(tensor, loss)" if self.loss is None else ""
            self.explanation.say(
                f"The gradient of {self.name} has NaNs: use detect_anomaly(){more}", NAN
            )
        elif not is_alive(grad._array):
            more = "; explain(tensor, loss) says where" if self.loss is None else ""
            self.explanation.say(f"The gradient of {self.name} is zero{more}", ZERO)
        else:
            self.explanation.say(f"{self.name} has a gradient", FILLED)
        return True

    def tell_not_a_leaf(self):
        """The tensor is not a leaf, so its `.grad` is not kept."""
        node = node_or_mark(self.tensor)
        place = place_of(node)
        self.explanation.say(
            f"{self.name} is not a leaf: it comes from {_shown(node)}, and only "
            "leaves keep their .grad. Call retain_grad() on it before the backward pass",
            NOT_A_LEAF,
            place,
        )

    def tell_with_loss(self):
        """The tensor requires grad, and a loss was given."""
        losses = self.loss if type(self.loss) in (list, tuple) else [self.loss]
        constant = [loss for loss in losses if isinstance(loss, Tensor) and not loss.requires_grad]
        if constant:
            self.explanation.say("The loss does not require grad: it has no graph")
            causes = self.those_after(untracked_reason.of(constant[0]))
            self.tell_causes(causes, CONSTANT)
            if not causes:
                self.explanation.say(f"It does not use {self.name}, or was cut off {_unseen_cut()}")
            return
        roots = roots_of(self.loss)
        nodes = nodes_of(roots)
        edge = known_edge_of(self.tensor)
        if all(node is not edge[0] for node in nodes):
            self.tell_no_path(nodes)
            return
        grad, retains = _grad_of(self.tensor), self.tensor.retains_grad
        if grad is None and node_or_mark(self.tensor) is not None and not retains:
            self.tell_not_a_leaf()
        self.tell_finding(probe(roots, edge), nodes, edge, grad)

    def those_after(self, causes):
        """The causes that come after the tensor, or all of them if none does."""
        return [cause for cause in causes if cause.follows(self.tensor)] or causes

    def tell_no_path(self, nodes):
        """The graph of the loss does not contain the tensor."""
        targets = [node.variable if type(node) is AccumulateGrad else node for node in nodes]
        causes = untracked_reason.merged([untracked_reason.of(target) for target in targets])
        causes = [cause for cause in causes if cause.follows(self.tensor)]
        self.explanation.say(f"The loss does not depend on {self.name} by its recorded graph")
        self.tell_causes(causes, UNUSED)
        if causes:
            return
        if all(place_of(node) for node in nodes if type(node) is not AccumulateGrad):
            self.explanation.say(
                "The loss was not computed from it, unless through Python numbers or numpy arrays: "
                "item(), numpy() and the like are not recorded"
            )
        elif source_location.lines.get():
            self.explanation.say(
                "It is not used, or it was cut off in a part that ran outside of record_lines()"
            )
        else:
            self.explanation.say(f"It is not used, or it was cut off on the way. {AGAIN}")

    def tell_finding(self, finding, nodes, edge, grad):
        """The graph of the loss contains the tensor: describe its gradient."""
        node, name = finding.node, self.name
        place = None if node is None else place_of(node)
        if finding.kind == FREED:
            self.tell_grad(grad)
            self.explanation.say(
                f"A backward pass from the loss has freed the saved values of {_shown(node)}: pass "
                "retain_graph=True to that pass",
                FREED,
                place,
            )
            if self.explanation.kind == NAN:
                self.explanation.say(
                    "Then explain(), or explain() before that pass, names the operator that makes "
                    "the first NaN"
                )
            if grad is None:
                self.explanation.say(
                    f"{name}.grad is None because that pass was autograd.grad(), or had other "
                    "inputs, or .grad was set to None afterwards"
                )
        elif finding.kind == UNDEFINED:
            where = f"{_shown(node)} returns None for it"
            self.explanation.say(f"The gradient of {name} is undefined: {where}", UNDEFINED, place)
        elif finding.kind == ZERO:
            where = "" if node is None else f": it becomes zero in {_shown(node)}{reason(finding)}"
            self.explanation.say(f"The gradient of {name} is zero{where}", ZERO, place)
        elif finding.kind == CANCELLED:
            where = f"the gradients of several paths to {_shown(node)} cancel"
            self.explanation.say(f"The gradient of {name} is zero: {where}", CANCELLED, place)
        elif finding.kind in (NAN, NAN_SUM):
            where = _maker_of_nans(finding)
            self.explanation.say(f"The gradient of {name} has NaNs: {where}", NAN, place)
        else:
            self.tell_alive(finding, nodes, edge, grad)

    def tell_alive(self, finding, nodes, edge, grad):
        """The gradient that arrives at the tensor is not zero, or is unknown."""
        self.tell_grad(grad)
        if finding.kind == ALIVE and self.explanation.kind in (ZERO, NAN):
            self.tell_difference([_shown(node) for node in nodes if _has_hooks(node)])
        elif finding.kind == ALIVE:
            self.explanation.say(f"The loss leads to {self.name}, with a gradient that is not zero")
            if grad is None:
                self.explanation.say("No backward() has reached it yet", UNREACHED)
        elif finding.kind == TRACED:
            self.explanation.say(f"The loss depends on {self.name}, but {TRACING}", UNREACHED)
        else:
            why = f"{_shown(finding.node)} can run only once" if finding.node else finding.error
            self.explanation.say(f"The gradient of {self.name} is unknown: {why}", UNKNOWN)

    def tell_difference(self, hooked):
        """The gradient is zero or has NaNs, and the one that arrives at the tensor does not."""
        hooks = f"hooks of {', '.join(hooked)} may change it"
        if self.explanation.kind == NAN:
            why = hooks if hooked else OTHER_NANS
            self.explanation.say(f"The gradient that arrives from the loss has none: {why}")
            return
        self.explanation.kind = HOOKS if hooked else ZERO
        why = hooks if hooked else "it was set to zero"
        self.explanation.say(f"The gradient that arrives from the loss is not zero: {why}")


def _sentence(cause) -> str:
    place = shown_place(cause.place)
    what = f"{cause.operator}, at {place},"
    if cause.kind == untracked_reason.DETACHED:
        return f"It was detached at {place}: by detach(), .data or Variable()"
    if cause.kind in (untracked_reason.NO_GRAD, untracked_reason.INFERENCE_MODE):
        where = "a no_grad block" if cause.kind == untracked_reason.NO_GRAD else "inference mode"
        return f"{what} ran in {where}, where nothing is recorded"
    if cause.kind == untracked_reason.CONSTANT_ARGUMENT:
        return f"{what} has no derivative with respect to this argument"
    if cause.kind == untracked_reason.MARKED:
        return f"{what} marks this output as not differentiable"
    return f"{what} has no derivative"


def _shown(node) -> str:
    place = place_of(node)
    name = node.name()
    if type(node) is AccumulateGrad:
        name = f"a leaf of shape {list(node.variable.shape)}"
    return name if place is None else f"{name} at {shown_place(place)}"


def _maker_of_nans(finding) -> str:
    node = finding.node
    if finding.kind == NAN_SUM:
        return (
            f"the gradients of several paths to {_shown(node)} have none, but their sum has, as "
            "inf - inf"
        )
    if any(has_nans(kept.array) for kept in kept_by(node)):
        how = "from NaNs that it had saved in the forward pass"
    else:
        how = "in its backward" if node.reverse is None else "for example by 0 * inf or 0 / 0"
    return f"{_shown(node)} makes the first, {how}"


def _known_leaf(tensor) -> str | None:
    """The description of a tensor without graph, if it is known that no operator computed it."""
    state = known_leaf_state(tensor)
    if type(state) is not LeafState:
        return None
    if state.kind is not None:
        return state.kind.__name__
    return "leaf" if state.grad is not None or state.node() is not None else None


def _unseen_cut() -> str:
    """How a path ends without a noted cause."""
    if source_location.lines.get():
        return (
            "by item(), numpy(), tolist() and the like, which are not recorded, or before "
            "record_lines() was called"
        )
    return (
        "by detach(), a no_grad block, an operator without a derivative, or item(), numpy(), "
        f"tolist() and the like. {AGAIN}"
    )


def _grad_of(tensor):
    # `.grad` without the warning for tensors that are not leaves
    return grad_of(tensor)


def _is_used(leaf) -> bool:
    state = known_leaf_state(leaf)
    return type(state) is LeafState and state.node() is not None


def _has_hooks(node) -> bool:
    if type(node) is AccumulateGrad and known_leaf_state(node.variable).hooks:
        return True
    extras = node.extras
    return extras is not None and bool(
        extras.pre_hooks or extras.post_hooks or any((extras.tensor_hooks or {}).values())
    )
