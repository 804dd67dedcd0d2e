"""The grad mode: whether operators record their results, leave them unrecorded, or mark them.

Each state of this module is a context variable, so it belongs to a thread or an asyncio task.
"""

from __future__ import annotations

import contextvars
import secrets
from contextlib import contextmanager

# INFERENCE marks results and records nothing, even where grad mode is switched on again within.
# MARK is the mode of a Function's forward: nothing is recorded, but results that depend on tensors
# that require grad are marked, so that a saved one is not taken for a constant. RULE is that mode
# where JAX's rules run the forward: nothing is marked, and JAX differentiates what is computed.
RULE, MARK, PLAIN, RECORD, INFERENCE, INFERENCE_WITH_GRAD = -2, -1, 0, 1, 2, 3

# the modes in which what is computed may have a gradient
FOLLOWED = (RULE, MARK, RECORD)

# the current one of the six: every operator reads it
current_mode = contextvars.ContextVar("jaxgrad.mode", default=RECORD)

# the mode that applies while grad mode is off: PLAIN, or inside a Function's forward MARK or RULE
off = contextvars.ContextVar("jaxgrad.grad_mode_off", default=PLAIN)

# whether recorded operators may save inference tensors: a derivative may be asked for in inference
# mode, and be of a function that reads such tensors
saves_inference = contextvars.ContextVar("jaxgrad.saves_inference", default=False)

# how many transforms of `jaxgrad.func` enclose the current call
transforms = contextvars.ContextVar("jaxgrad.transforms", default=0)

# the innermost backward pass that is running in the current context
current_pass = contextvars.ContextVar("jaxgrad.current_pass", default=None)

# the transforms of `jaxgrad.func` around the current call, the outermost first, by which tensors
# print; each has the `level` of forward mode that it entered, or None
transform_levels = contextvars.ContextVar("jaxgrad.transform_levels", default=())


# inside of a transform by reverse mode: weak references to tensors that got a history by a write
written = contextvars.ContextVar("jaxgrad.written", default=None)

IN_A_TRANSFORM = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed: {} would lose the "
    "gradient that the transform computes"
)


@contextmanager
def transform(level):
    """Enter a transform of `jaxgrad.func`."""
    token = transform_levels.set((*transform_levels.get(), level))
    try:
        yield
    finally:
        transform_levels.reset(token)


def is_grad_enabled() -> bool:
    """Whether operators are recorded in the current context.

    >>> with jaxgrad.no_grad():
    ...     jaxgrad.is_grad_enabled()
    False
    """
    return current_mode.get() in (RECORD, INFERENCE_WITH_GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in the current context.

    >>> jaxgrad.is_inference_mode_enabled()
    False
    """
    return current_mode.get() >= INFERENCE


def with_grad(enabled: bool) -> int:
    """The mode that switching grad mode on or off leads to."""
    if current_mode.get() >= INFERENCE:
        return INFERENCE_WITH_GRAD if enabled else INFERENCE
    return RECORD if enabled else off.get()


def switch(wanted: int) -> int:
    """Set the mode and return the previous one, for a `finally` that calls `current_mode.set`."""
    before = current_mode.get()
    try:
        current_mode.set(wanted)
        return before
    except BaseException:
        current_mode.set(before)  # an interrupt: the caller does not get to its `try`
        raise


@contextmanager
def recording():
    """Record operators, in inference mode too: the function that is called is differentiated."""
    before, token = switch(RECORD), saves_inference.set(True)
    try:
        yield
    finally:
        saves_inference.reset(token)
        current_mode.set(before)


@contextmanager
def without_inference():
    """Leave inference mode, which drops tangents. Grad mode stays off where it was on."""
    present = current_mode.get()
    before = switch(off.get() if present >= INFERENCE else present)
    try:
        yield
    finally:
        current_mode.set(before)


# the scope of the innermost function that is being captured (capture/scope.py)
scope = contextvars.ContextVar("jaxgrad.scope", default=None)

# whether the numbers of tensors in the trace are held back from code that can do without them
withholds_numbers = contextvars.ContextVar("jaxgrad.withholds_numbers", default=False)


def open_observation():
    """The observation of the trace that is in progress, while the traced function itself runs."""
    current = scope.get()
    observation = None if current is None else current.observation
    return observation if observation is not None and observation.is_open else None


# Autocast (ops/autocast.py): pairs of a device type and the dtype to convert to, None while it is
# off; and the cache of parameters that were converted since it was entered.
casting = contextvars.ContextVar("jaxgrad.casting", default=None)
casts = contextvars.ContextVar("jaxgrad.casts", default=None)

# the random numbers of a function that may run several times; or a text: a draw raises it
draws = contextvars.ContextVar("jaxgrad.draws", default=None)


# gives the words of a draw of the default generator in a program that is exported
key_source = contextvars.ContextVar("jaxgrad.key_source", default=None)


class Draws:
    """The random numbers that a function draws, repeated when it runs again."""

    def __init__(self):
        self.results = []

    @contextmanager
    def again(self):
        """Repeat the recorded draws from the first; further draws are new and recorded."""
        token = draws.set((self, iter(range(len(self.results))), draws.get()))
        try:
            yield
        finally:
            draws.reset(token)


@contextmanager
def refuse_draws(message: str):
    """Raise RuntimeError(message) for draws of random numbers."""
    token = draws.set(message)
    try:
        yield
    finally:
        draws.reset(token)


def drawn(draw):
    """`draw()`, or its recorded result where the enclosing function runs again."""
    return _drawn(draws.get(), draw)


# the numbers that a verified call reads by `tracing.number` (capture/graph_input.py)
number_reads = contextvars.ContextVar("jaxgrad.number_reads", default=None)


# what takes in what Python draws and reads of the outside world (draws/drawn.py); None where none
drawn_run = contextvars.ContextVar("jaxgrad.drawn_run", default=None)


def refuse_to_repeat(why: str):
    """Note that a traced function does something that no call of its program can repeat."""
    run = drawn_run.get()
    if run is not None:
        run.refuse(why)


def random_seed() -> int:
    """A seed of 63 bits that the operating system draws."""
    return secrets.randbits(63)


def new_seed() -> int:
    """A seed that the operating system draws; the runs of a verified call get the same."""
    reads = number_reads.get()
    return secrets.randbits(64) if reads is None else reads.read(random_seed)


def _drawn(around, draw):
    if around is None:
        return draw()
    if isinstance(around, str):
        raise RuntimeError(around)
    kept, numbers, further = around
    number = next(numbers, None)
    if number is None:
        kept.results.append(_drawn(further, draw))
        return kept.results[-1]
    return kept.results[number]
