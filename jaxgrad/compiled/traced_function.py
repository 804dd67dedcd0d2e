"""The traces of a compiled function: which traces it keeps, when it is traced again, and for which
arguments it runs uncompiled.
"""

from __future__ import annotations

import warnings

from ..cached import cached_property
from ..capture import DrawsInTurn, RunsUncompiled, SharesMemory
from ..capture.guards import ProgramCache
from ..capture.known_numbers import ChangingNumbers
from ..capture.tracing import Tracing
from ..core.aval import has_numbers
from ..core.jax_state import keeps_jax_state
from ..core.tracebacks import users_stacklevel
from ..draws.frozen import FrozenReads
from ..draws.python_runs import looks_at_draws, opaque_of
from ..draws.undrawn import Undrawn, why_undrawn
from ..tape import handle_lock
from ..tape.tensor import Tensor, has_tangent, held
from . import one_shot, stance
from .executable import Executable
from .fallback import Fallback

# How many traces in a row trigger a warning: of programs that leave tensors behind and so serve
# only once, and of others for arguments of one kind.
MOST_ESCAPING_IN_A_ROW, MOST_IN_A_ROW = 3, 8

TRACED_AGAIN = (
    "{name}, compiled by jaxgrad.jit, is traced at every call, this time because {why}. A number "
    "that changes is best an argument, or read by jaxgrad.tracing.number"
)


class TracedFunction:
    """The traces of a function.

    `cache`: its programs; `count`: how often it was traced, and `why` the last time;
    `traces_in_a_row`: how many of the last calls were traced although there was a program for their
    kind of arguments; `most_in_a_row`: after so many traces it runs uncompiled, or warns; `warned`:
    the warnings so far; `changing`: the tensors whose numbers it looks at and changes; `fallback`:
    the arguments for which it runs uncompiled, None if it raises instead; `undrawn`: the arguments
    for which it draws values that no program can draw; `draws_anew`: whether each call makes the
    draws of Python again.
    """

    __name__: str
    fallback: Fallback | None = None
    most_in_a_row = MOST_IN_A_ROW
    draws_anew = True

    def begin(self, cache: ProgramCache):
        """Begin without any program."""
        self.cache = cache
        self.count, self.why, self.traces_in_a_row = 0, "it has not been called", 0
        self.warned: set[str] = set()
        self.changing = ChangingNumbers()

    @cached_property
    def undrawn(self) -> Undrawn:
        return Undrawn(self.__name__, self.function)

    @property
    def traces(self) -> list[Executable]:
        """All programs."""
        return [program for programs in self.cache.programs.all_values() for program in programs]

    def explain(self) -> str:
        """Why the function was last traced: what differed from the trace before.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> _ = double(jaxgrad.ones(2)), double(jaxgrad.ones(3))
        >>> double.explain().partition(" because ")[2]
        'argument 0 was torch.float32[2], and is torch.float32[3]'
        """
        times = "once, because" if self.count == 1 else f"{self.count} times, the last time because"
        return f"traced {times} {self.why}"

    def traced(self, leaves, structure, had_program: bool):
        """A new program and its captured tensors. If the function must run uncompiled: None, and
        the error of its trace, or None.
        """
        key = self.cache.key(leaves, structure)
        if self.undrawn.holds(key) or (self.fallback is not None and self.fallback.holds(key)):
            return None, None
        if self.stays_uncompiled(leaves, structure):
            return None, None
        # after the search, so that warm calls need not look: no program serves a tracer, or a
        # tensor without data
        if not all(map(has_numbers_of, leaves)):
            return None, None
        # a program cannot take tangents of forward mode
        if any(isinstance(leaf, Tensor) and has_tangent(leaf) for leaf in leaves):
            return None, None
        try:
            return self.new_trace(leaves, structure, had_program)
        except DrawsInTurn as error:
            self.undrawn.leave_all(self.cache, leaves, structure, str(error))
            return None, None
        except RunsUncompiled:
            return None, None
        except Exception as error:
            if self.fallback is None:
                raise
            return None, error  # what is wrong uncompiled too is raised there

    def stays_uncompiled(self, leaves, structure) -> bool:
        """Whether the stance forbids a trace. Raises RuntimeError if the stance is to fail."""
        if stance.current == "fail_on_recompile":
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile': "
                f"{self.__name__} has no program for this call, because "
                f"{self.cache.reason(leaves, structure)}"
            )
        return stance.current == "eager_on_recompile"

    @keeps_jax_state
    def new_trace(self, leaves, structure, had_program: bool):
        """Trace the function; gives the program and its captured tensors."""
        one_shot.refuse_arguments(self.function, leaves, structure)
        # before the trace, which changes variables and attributes that guards compare
        self.why = self.cache.reason(leaves, structure)
        self.count += 1
        # here, where time is lost anyway: it looks at all programs
        self.cache.drop_expired()
        reads = FrozenReads(self.traced_function())
        try:
            tracing = self.new_tracing(leaves, structure)
            self.refuse_changing(tracing)
        except BaseException:
            if self.fallback is None:  # else the uncompiled function gets what was drawn
                self.cache.log.clear()
                reads.put_back()
            raise
        tensors = tracing.tensors_of(leaves)
        if not all(map(has_numbers_of, tensors)):
            tracing.discard()
            return None, None
        opaque, is_once = opaque_of(tracing)
        program = tracing.executable(tracing.trace(tensors), tensors, leaves)
        self.cache.log.clear()
        if opaque and tracing.escaped is None:
            self.undrawn.leave_all(self.cache, leaves, structure, why_undrawn(reads, opaque))
            return program, tensors
        # a program that leaves tensors behind runs this once, and freezes nothing
        is_kept = tracing.escaped or self.may_freeze(reads, tracing, leaves, structure)
        if is_kept and not is_once:
            self.cache.add(program, leaves, structure)
        self.count_traces(program, had_program, leaves, structure)
        return program, tensors

    def refuse_changing(self, tracing):
        """Raise RuntimeError where the function looks at numbers that it changes at each call."""
        try:
            self.changing.note(tracing)
        except RuntimeError:
            tracing.discard()
            raise

    def may_freeze(self, reads: FrozenReads, tracing, leaves, structure) -> bool:
        """Whether a program that repeats what the function read may be kept, after a warning."""
        if self.draws_anew:
            return True
        for message in reads.messages(tracing):
            if message not in self.warned:
                self.warned.add(message)
                warnings.warn(message, stacklevel=users_stacklevel())
        return True

    def count_traces(self, program, had_program, leaves, structure):
        """Count the traces in a row. Once there are many, leave the function uncompiled for such
        arguments, or warn.
        """
        is_once = program.trace.escaped is not None
        self.traces_in_a_row = self.traces_in_a_row + 1 if had_program or is_once else 0
        most = MOST_ESCAPING_IN_A_ROW if is_once else self.most_in_a_row
        if self.traces_in_a_row != most:
            return
        if self.fallback is not None:
            why = f"it was traced at every call, this time because {self.why}"
            self.fallback.leave(self.cache.key(leaves, structure), why)
            return
        if looks_at_draws(program):
            why = f"it looks at what it draws, and was traced at every call: {self.why}"
            self.undrawn.leave_all(self.cache, leaves, structure, why)
            return
        message = TRACED_AGAIN.format(name=self.__name__, why=self.why)
        warnings.warn(message, stacklevel=users_stacklevel())

    def new_tracing(self, leaves, structure) -> Tracing:
        """A trace of a call. If the function looks at a number that varies, it is traced once more
        with this number as a constant.
        """
        cache = self.cache
        numbers = cache.numbers_in(leaves, structure)
        while True:
            cache.inspected.clear()
            try:
                tracing = self.tracing_of(leaves, structure, numbers.varying)
            except RunsUncompiled:
                raise
            except Exception:
                # whatever was raised: libraries refuse symbolic numbers with errors of their own
                if not (cache.give_up(numbers) or cache.give_up_draws()):
                    raise
                continue
            # code may also go another way where a number is refused
            if not (cache.inspected and cache.give_up(numbers)):
                cache.rebound |= tracing.changed_numbers - cache.looked_at
                return tracing
            tracing.discard()

    def tracing_of(self, leaves, structure, varying) -> Tracing:
        """A trace; joins memory that captured tensors share, if the function needs that."""
        while True:
            try:
                return self.run_traced(leaves, structure, varying)
            except SharesMemory as error:
                self.cache.joined.update(error.storages)

    def traced_function(self):
        """The function that a trace runs."""
        return self.function

    def observed_function(self):
        """The function whose state a replay reinstates."""
        return self.function

    def run_traced(self, leaves, structure, varying) -> Tracing:
        return Tracing(self, leaves, structure, varying)

    def clear_cache(self):
        """Forget all programs of the function, and for which arguments it runs uncompiled.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> _ = double(jaxgrad.ones(2))
        >>> double.clear_cache()
        >>> double.traces
        []
        """
        with handle_lock.lock:
            self.cache = ProgramCache(self.__name__, self.cache.static)
            self.traces_in_a_row, self.changing = 0, ChangingNumbers()
            vars(self).pop("undrawn", None)
            if self.fallback is not None:
                self.fallback = Fallback(self.__name__, self.function)


def has_numbers_of(leaf) -> bool:
    return has_numbers(held(leaf) if isinstance(leaf, Tensor) else leaf)
