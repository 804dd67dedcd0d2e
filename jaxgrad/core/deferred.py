"""Deferred execution: calls of kernels that are noted now and run later, many in one program.

A call appends an entry to the `Stretch` of its thread and gives a `Pending` in place of each array.
When code needs an array, the stretch runs: kernel by kernel, mostly on the host, or as one compiled
program if its structure has come up often. The program has barriers between its operators, so XLA
compiles each operator as it does alone, and the results equal those of the single kernels to the
bit.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import Counter
from itertools import chain, compress, count
from operator import attrgetter

import jax
import numpy

from ..late import LateModule
from . import aval as avals
from . import bounded_cache, device, executor, fork, reference_counts, spread
from . import kernel as kernels
from . import pending as pendings
from .aval import struct_of, with_dual, with_strides
from .host_values import HostValues
from .jax_state import keeps_jax_state, repairs_caches
from .pending import Failure, Pending, at_hand, known, noted, run_all, stretches, value_of

disk_cache = LateModule("jaxgrad.core.disk_cache")
cost_model = LateModule("jaxgrad.core.host.cost")
host_routine = LateModule("jaxgrad.core.host_routine")
jax_core = LateModule("jax.extend.core")

# A longer stretch runs at once: the time to compile it grows with its length, and so does the
# memory of what nobody holds any more.
LONGEST = 256

# Bytes: so much may the large results of a stretch have. What its calls read is kept until it runs,
# such as the residuals of a backward pass.
MOST_BYTES, LARGE = 2**28, 2**20

# So often a structure must have come up before it is compiled; None: `repeats_of` says how often.
REPEATS: int | None = None

# How often where the host runs none of its programs, as on accelerators.
REPEATS_OF_KERNELS = 32

# After so many runs of a structure operator by operator, the host runs it as one function.
ROUTINE = 3

# A structure: microseconds to compile it beyond its equations, and for each operator, and what the
# call of a kernel of XLA takes
COMPILE, COMPILE_OPERATOR, RUN = 30_000, 1_000, 6.0

# After so many new structures in a row, no structure is looked at for some time: that many calls,
# which doubles each time up to the most.
NEW_IN_A_ROW, PAUSE, LONGEST_PAUSE = 64, 2**12, 2**16

# how many calls are run to check the arguments of the next one, and then once more with all others
FEW = 4

# XLA removes barriers on CPUs before it fuses operators, unless it leaves this pass out. It would
# turn products and sums of two operators into one instruction, which rounds once where these two
# round twice.
BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}

# how many structures that came up are remembered, by their hashes
REMEMBERED = 2**16

_new = object.__new__
_AS_IT_IS = contextlib.nullcontext()  # a block under the settings that there are


# One lock for all: the stretches of two threads may need results of each other.
_running = threading.RLock()


class Stretch:
    """The calls of a thread that have not run yet.

    entries: for each call its program, its arrays, and its results; context: the settings of JAX
    under which they run; bytes: of the large results; pause: for how many calls no key is made.
    """

    waits, is_new = True, False  # results wait for calls

    def __init__(self):
        self.entries: list[tuple] = []
        self.context, self.bytes = None, 0
        self.pause, self.next_pause, self.new_in_a_row = 0, PAUSE, 0
        stretches[id(self)] = self

    def run(self, wanted: Pending | None = None):
        """Compute the results of all entries that there are now, `wanted` among them."""
        if not self.entries:
            return
        if fork.is_forked:
            fork.refuse_call()
        with _running:
            length = len(self.entries)
            if not length:
                return
            if executor.compilers.pool is not None:
                executor.compilers.finish()
            is_alone = length == 1 or self.pause > 0
            self.pause -= min(self.pause, length)
            with self.outside_of_traces(), numpy.errstate(all="ignore"):
                if is_alone or not self.run_together(self.entries[:length]):
                    self.run_one_by_one(length)

    def may_note(self, size: int) -> bool:
        """Whether the next call may be noted; first runs the pending calls if it must not wait for
        this one. size: the bytes of its results if they are large.
        """
        length, self.bytes = len(self.entries), self.bytes + size
        is_short = 0 < length < LONGEST and self.bytes <= MOST_BYTES
        if is_short and self.context == _settings():
            return True
        if length:
            self.run()
        self.context, self.bytes = _settings(), size
        config = jax.config
        if executor.is_traced():
            return False  # what is called in a trace is a part of it
        return not (config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit)

    def outside_of_traces(self):
        """Compute at once inside of the block, with the settings at the time of the calls."""
        is_usual = self.context == _settings() and not executor.is_traced()
        return _AS_IT_IS if is_usual else self._with_settings()

    @contextlib.contextmanager
    def _with_settings(self):
        with contextlib.ExitStack() as stack:
            if executor.is_traced():
                stack.enter_context(jax.ensure_compile_time_eval())
            if self.context != _settings():
                precision, place = self.context
                stack.enter_context(jax.default_matmul_precision(precision))
                stack.enter_context(jax.default_device(place))
            yield

    def run_one_by_one(self, length):
        entries = self.entries
        for _ in range(length):
            if not entries:
                return  # a signal handler has read a result, and so run them
            entry = entries[0]
            compute(*entry)
            if entries and entries[0] is entry:
                del entries[0]  # and with it what only this entry still holds

    def peek(self, wanted: Pending):
        """Compute one result, alone if it needs few of the calls."""
        with _running:
            needed, missing = [], {id(wanted)}
            for entry in reversed(self.entries):
                if missing.isdisjoint(map(id, entry[2])):
                    continue
                needed.append(entry)
                missing.update(id(array) for array in entry[1] if type(array) is Pending)
            if len(needed) > FEW:
                self.run()
                return
            executor.compilers.finish()
            with self.outside_of_traces(), numpy.errstate(all="ignore"):
                for entry in reversed(needed):
                    compute(*entry)  # the entry stays: whole structures come up again

    def run_together(self, entries) -> bool:
        """Run entries as one program of XLA, or as a routine of the host. Returns whether that was
        possible: their structure must have come up often enough.
        """
        programs, operands, results = zip(*entries, strict=True)
        results = [*chain.from_iterable(results)]
        # who refers to a result tells whether it is needed
        references = tuple(reference_counts.counts_of(results))
        values = [*results, *chain.from_iterable(operands)]
        # the place of each value is where it comes up first
        places = tuple(map({}.setdefault, map(id, values), count()))
        key = programs, places, references
        times, repeats = self.times_of(key)
        is_due = executor.chosen != "host" and times > repeats
        if is_due and self.run_whole(key, values, results):
            self.remove(entries)
            return True
        if times <= ROUTINE or executor.chosen == "compiled":
            return False
        self.run_routine(key, entries, values, results)
        return True

    def remove(self, entries):
        """Remove entries that have run, unless a signal handler that read a result has."""
        if self.entries and self.entries[0] is entries[0]:
            del self.entries[: len(entries)]

    def run_whole(self, key, values, results) -> bool:
        """Run a structure as one program of XLA. Returns whether that was possible: an array may
        not be computed yet, or there may be too little memory.
        """
        whole = _compiled.get(key) or _compiled.find(key)
        if whole is None:
            lead = repeats_of(key[0])[1] if REPEATS is None else 0
            whole = _compiled.keep(key, Whole(*key, lead))
        if whole.lead > 0 and whole.wait is not None:
            whole.lead -= 1
            return False
        arrays = [known(at_hand(values[i])) for i in whole.inputs]
        if Pending in map(type, arrays):
            # that of another thread, which may wait for a result of this stretch, or a failure
            return False
        if device.are_several() and _are_spread(arrays):
            return False  # XLA would move what is on the default device to the others
        if not whole.is_ready(arrays):
            return False
        try:
            _give(compress(results, whole.needed), _result(whole.kernel, *arrays))
        except (jax.errors.JaxRuntimeError, MemoryError):
            return False
        return True

    def run_routine(self, key, entries, values, results):
        """Run a structure by functions of the host, with XLA's kernels in between."""
        routine = _routines.get(key) or _routines.find(key)
        if routine is None:
            routine = _routines.keep(key, host_routine.Routine(*key, _UNHELD))
        first, is_outdated = 0, False
        for part in routine.parts:
            try:
                host_values = part.computed(values)
            except Exception:
                host_values = None  # the call that raises keeps the error for its results
            if host_values is None:
                self.run_one_by_one(part.calls)
                is_outdated |= part.is_outdated
            else:
                # by one call of C code
                any(map(_set_stretch, map(results.__getitem__, part.results), host_values))
                self.remove(entries[first : first + part.calls])
            first += part.calls
        if is_outdated:
            _routines.pop(key, None)

    def times_of(self, key) -> tuple[float, float]:
        """How often a structure has come up, and how often it must before XLA compiles it."""
        structure = hash(key)
        seen = _times.get(structure)
        if seen is None:
            if len(_times) >= REMEMBERED:
                _times.clear()
            seen = _times[structure] = [0, None]
            self.new_in_a_row += 1
            if self.new_in_a_row >= NEW_IN_A_ROW:
                self.pause, self.new_in_a_row = self.next_pause, 0
                self.next_pause = min(2 * self.next_pause, LONGEST_PAUSE)
        else:
            self.new_in_a_row, self.next_pause = 0, PAUSE
        seen[0] += 1
        if REPEATS is not None or seen[0] == 1:  # nothing is compiled at the first time
            return seen[0], cost_model.NEVER if REPEATS is None else REPEATS
        if seen[1] is None:
            seen[1] = repeats_of(key[0])[0]
        return seen[0], seen[1]


def repeats_of(programs) -> tuple[float, float]:
    """After how many runs on the host the compilation of a structure begins, and after how many it
    has ended, by the model of cost.
    """
    costs = [cost for program in programs if (cost := program.compact.cost) is not None]
    if not costs:
        return REPEATS_OF_KERNELS, 0
    host = sum(cost.host for cost in costs)
    saved = sum(cost.saved_in_whole for cost in costs) - cost_model.KERNEL
    # a program of XLA's kernels has no cost here
    host, saved = (time + RUN * (len(programs) - len(costs)) for time in (host, saved))
    compile = COMPILE + COMPILE_OPERATOR * len(programs) + sum(cost.compile for cost in costs)
    start, end = cost_model.turns(host, saved, compile)
    return start, end - start if end < cost_model.NEVER else 0


def _are_spread(arrays) -> bool:
    """Whether arrays are on different devices; values of the host are on the default one."""
    places = {frozenset(array.devices()) for array in arrays if isinstance(array, jax.Array)}
    if any(isinstance(array, numpy.ndarray) for array in arrays):
        places.add(frozenset((jax.local_devices()[0],)))
    return len(places) > 1


@repairs_caches
def _result(kernel, *arrays):
    return kernel(*arrays)


def compute(program, arrays, results):
    """Compute the results of one entry."""
    try:
        kernel = program.kernel
        host = kernel.host
        values = None if host is None else host.results(arrays)
        if values is not None:
            for result, value in zip(results, values, strict=True):
                result.stretch = HostValues(value)
            return
        outputs = _result(kernel.unchecked, *map(value_of, arrays))
    except Exception as error:
        # raised where the result is read; its frames refer to the results and to what runs now
        failure = Failure(error.with_traceback(None))
        outputs = failure if program.single else [failure] * len(results)
    _give(results, (outputs,) if program.single else outputs)


def _give(results, arrays):
    """Set the arrays of results, by one call of C code."""
    any(map(_set_array, results, arrays))


_set_array, _set_stretch = Pending.array.__set__, Pending.stretch.__set__


class _Local(threading.local):
    def __init__(self):
        self.stretch = noted.stretch = Stretch()


local = _Local()

# by the hashes of the structures that ran, how often they have come up, and how often they must
_times: dict[int, list] = {}


class Whole:
    """The compiled program of a stretch.

    programs: one for each entry; places: for each result and then each operand, the position where
    it occurs first; references: the number of references to each result. `needed`: for each result
    whether code still holds it; `inputs`: the positions of the operands that are no results.
    """

    def __init__(self, programs, places, references, lead: int):
        self.lead, self.wait = lead, None
        self.programs, self.operands = programs, places[len(references) :]
        uses = Counter(self.operands)
        self.needed = [number > uses[i] + _UNHELD for i, number in enumerate(references)]
        self.inputs = sorted(place for place in uses if place >= len(references))
        self.weight = bounded_cache.weight_of_kernel(
            sum(program.equations + 2 for program in programs)
        )
        wide = any(program.wide for program in programs)
        options = BARRIERS if jax.default_backend() == "cpu" else None
        keeps = device.may_differ()
        self.jitted = jax.jit(self.function, compiler_options=options, keep_unused=keeps)
        bounded_cache.kernels.count(self.weight)
        self.by_types = executor.with_wide_types if wide else lambda function: function
        self.kernel = self.by_types(disk_cache.from_disk(self.jitted))

    def is_ready(self, arrays) -> bool:
        """Whether the program can be used for these arrays. At first a thread compiles it, during
        `lead` runs of the structure.
        """
        if self.lead > 0:
            lower = self.by_types(lambda: self.jitted.trace(*arrays).lower())
            self.wait = executor.in_background(lambda: disk_cache.compile(lower()))
            self.kernel = self.by_types(self.jitted)
            self.lead -= 1
            return False
        if self.wait is not None:
            self.wait()
            self.wait = None
        return True

    def function(self, *arrays):
        results, arguments = [], dict(zip(self.inputs, arrays, strict=True))
        operands = iter(self.operands)
        for program in self.programs:
            jaxpr = _jaxpr_of(program)
            inputs = []
            for expected in jaxpr.in_avals:
                place = next(operands)
                array = arguments[place] if place in arguments else results[place]
                # a number has 64 bits here, if other programs of the stretch need them
                inputs.append(jax.lax.convert_element_type(array, expected.dtype))
            # around the operator: XLA also shares the reciprocal of a number that is used twice
            inputs = jax.lax.optimization_barrier(inputs)
            results += jax.lax.optimization_barrier(jax_core.jaxpr_as_fun(jaxpr)(*inputs))
        return [*compress(results, self.needed)]


_compiled = bounded_cache.BoundedCache(bounded_cache.kernels, attrgetter("weight"))
_routines = bounded_cache.BoundedCache(bounded_cache.kernels, attrgetter("weight"))


def _jaxpr_of(program):
    """The jaxpr of a program's kernel, as for a call of its own."""
    with jax.enable_x64(True) if program.wide else contextlib.nullcontext():
        return program.compact.trace(*map(struct_of, program.inputs))[0]


def _references() -> int:
    """The count of references to a result that only its own entry holds."""
    entries = [(None, (), (_new(Pending),))]
    _, _, results = zip(*entries, strict=True)
    results = [*chain.from_iterable(results)]
    return next(reference_counts.counts_of(results))


_UNHELD = _references()


# kernels


VARIABLE, MODES = "JAXGRAD_EAGER", ("deferred", "immediate")


def set_mode(wanted: str, source: str):
    """Choose whether calls are noted and run later, or run at once, and which executor runs them:
    a word of MODES, one of EXECUTORS, or both with a comma between them; what is left out is the
    default. Raises ValueError for other words; source: where it was asked for.
    """
    global mode
    words = wanted.split(",")
    modes = [word for word in words if word in MODES]
    chosen = [word for word in words if word in executor.EXECUTORS]
    if len(modes) > 1 or len(chosen) > 1 or len(modes) + len(chosen) < len(words):
        raise ValueError(
            f"{source}: {wanted!r} is not one of 'deferred' and 'immediate', one of 'host' and "
            "'compiled', or one of each, as in 'immediate,host'"
        )
    run_all()
    mode = modes[0] if modes else "deferred"
    executor.choose(chosen[0] if chosen else "auto")


# the settings of JAX under which calls are made; a function in C, since many calls ask
_settings = functools.partial(
    attrgetter("jax_default_matmul_precision", "jax_default_device"), jax.config
)


def first_call(kernel):
    """The first call of a kernel. It traces the program, so that errors show at the line of the
    call, and starts to compile the kernel.
    """
    compute = kernel.compute

    @keeps_jax_state
    def call(*arrays):
        may_note = not pendings.suspended
        if may_note and (kernel.is_traced or executor.compile_ahead(kernel.program)):
            kernel.became_traced()
            return kernel.call(*arrays)
        results = compute(*map(value_of, arrays))
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(results)):
            kernel.became_traced()
        return results

    return call


def noting_call(kernel):
    """The call that notes a kernel, with the abstract value of its result if this is known in
    advance.
    """
    program = kernel.program
    shapes = tuple([with_dual(with_strides(output, None), False) for output in program.outputs])
    at_once, single, check = forcing(kernel.compute), program.single, program.precondition
    size = sum(output.shape.numel() * output.dtype.itemsize for output in shapes)
    size = size if size >= LARGE else 0
    is_special = program.heeds_settings or not program.inputs or size
    aval = shapes[0] if shapes else None

    def call(*arrays):
        stretch = local.stretch
        if pendings.suspended:
            return at_once(*arrays)
        entries = stretch.entries
        # the first call, one too many, a large one, or maybe one under other settings
        is_usual = 0 < len(entries) < LONGEST and not is_special
        if not (is_usual or stretch.may_note(size)):
            return at_once(*arrays)
        if check is not None:
            check(*arrays)
        if single:
            outcome = _new(Pending)
            outcome.array, outcome.aval, outcome.stretch = None, aval, stretch
            entries.append((program, arrays, (outcome,)))
            return outcome
        outcome = []
        for shown in shapes:
            result = _new(Pending)
            result.array, result.aval, result.stretch = None, shown, stretch
            outcome.append(result)
        # a tuple for each holder, so that references to a result tell who holds it
        entries.append((program, arrays, tuple(outcome)))
        return tuple(outcome)

    return call, aval if single and check is None and not is_special else None


def pending(aval, stretch) -> Pending:
    """A new result."""
    result = _new(Pending)
    result.array, result.aval, result.stretch = None, aval, stretch
    return result


def forcing(kernel):
    """`kernel`, which may also be called with pending results."""

    def call(*arrays):
        # found first: JAX takes 600 us to say that it does not know what is pending
        if Pending in map(type, arrays):
            return _result(kernel, *map(value_of, arrays))
        try:
            return kernel(*arrays)
        except RecursionError:
            pass  # an interrupt may have broken a cache of JAX
        return _result(kernel, *arrays)

    return call


def choice(kernel) -> tuple:
    """The state of a kernel, its call, and what `noted` is: see core/kernel.py."""
    state, call, aval = _choice(kernel)
    if kernel.program.mode != avals.IMMEDIATE or not device.may_differ():
        return state, call, aval
    return state, _on_one_device(kernel.program, call), None


def _on_one_device(program, call):
    """`call`, which raises, before anything is noted, if its arrays are on different devices."""
    primitive = getattr(program, "primitive", None)
    crosses = primitive is not None and primitive.crosses_devices
    # the state of an optimizer, and gradients, may follow what was moved
    is_strict = primitive is not None and not crosses

    def checked(*arrays):
        if pendings.suspended:
            return call(*arrays)
        if crosses:
            try:
                arrays = device.at_first(arrays)
            except (ValueError, jax.errors.JaxRuntimeError) as error:
                spread.raise_lost(error)  # a copy waits for what a communication gives
        arrays, place = device.together(program.name, arrays, is_strict)
        results = call(*arrays)
        if place is not None:
            for result in results if type(results) is tuple else (results,):
                if type(result) is Pending:
                    result.place = place
        return results

    return checked


def _choice(kernel) -> tuple:
    program, compute = kernel.program, kernel.compute
    if executor.observers:
        observed = executor.observed(program, compute)
        return kernels.OBSERVED, lambda *arrays: observed(*map(value_of, arrays)), None
    may_defer = program.defers and program.mode == avals.IMMEDIATE
    if mode != "deferred" or not may_defer or _checks_results(program):
        return kernels.AT_ONCE, forcing(compute) if program.may_get_pending else compute, None
    if kernel.is_traced:
        return kernels.NOTED, *noting_call(kernel)
    return kernels.FIRST, first_call(kernel), None


def _checks_results(program) -> bool:
    """Whether the kernel looks at the numbers of its results and may raise, so it must run."""
    return not (program.postcondition is program.undefined is None)


kernels.choose_by(choice)
mode = "deferred"
set_mode(os.environ.get(VARIABLE, mode), f"the environment variable {VARIABLE}")
