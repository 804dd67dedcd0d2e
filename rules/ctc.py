"""Connectionist temporal classification: the probability of a sequence of labels whose times are
not known.

A path gives a label or the blank at each time; it stands for the labels that remain when repeated
ones are merged and blanks removed. The labels with blanks around each are 2 * s + 1 states, and a
path goes through them, one or more steps at a time. The forward variables are the logarithms of the
probability of all paths to a state. Source: Graves et al., "Connectionist Temporal Classification",
2006.

log_probs: (t, b, c), floating point. targets: labels (b, s), or those of all samples in a row.
input_lengths, target_lengths: (b,), integers.
"""

import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import device_axes, dtypes, promotion
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """The negative log-likelihood of each sample, (b,), and the forward variables (b, t, states).

    The variables after the end of a sample are those of its last time.
    """
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    labels, inputs, ends = _padded(targets, input_lengths, target_lengths, blank)
    states = _states(labels, blank)
    _, paths, alpha = _forward(_emissions(log_probs, states), _skips(states, blank), inputs)
    return -_at_the_end(alpha, ends), jnp.moveaxis(paths, 0, 1)


def _at_the_end(alpha, ends):
    """The log-probability of the paths that end in the last label or the blank after it."""
    last = jnp.expand_dims(2 * ends, 1)
    final = jnp.take_along_axis(alpha, last, 1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), 1)[:, 0]
    return _log_sum(final, jnp.where(ends > 0, before, -jnp.inf))


def _log_sum(*terms):
    """The logarithm of the sum of exponentials; its derivative is finite where all are -inf."""
    greatest = lax.stop_gradient(_greatest(terms))
    shift = jnp.where(jnp.isfinite(greatest), greatest, 0)
    total = sum(jnp.exp(term - shift) for term in terms)
    some = total != 0  # also where it is NaN
    return jnp.where(some, jnp.log(jnp.where(some, total, 1)) + shift, -jnp.inf)


def _greatest(terms):
    greatest = terms[0]
    for term in terms[1:]:
        greatest = jnp.maximum(greatest, term)
    return greatest


def _forward(emissions, skips, lengths):
    """For each time the log-probability of the paths that go on to each state, before and after
    its emission, (t, b, states); and that after the last time of each sample.
    """
    states = emissions.shape[2]
    start = jnp.where(jnp.arange(states) == 0, 0, -jnp.inf).astype(emissions.dtype)
    start = jnp.broadcast_to(start, emissions.shape[1:])

    def step(alpha, inputs):
        emission, time = inputs
        moved = _log_sum(alpha, _shifted(alpha, 1), jnp.where(skips, _shifted(alpha, 2), -jnp.inf))
        runs = jnp.expand_dims(time < lengths, 1)
        after = jnp.where(runs, moved + emission, alpha)
        return after, (moved, after)

    times = jnp.arange(emissions.shape[0], dtype=lengths.dtype)
    last, (before, after) = device_axes.scan(step, start, (emissions, times))
    return before, after, last


def _shifted(alpha, count):
    padded = jnp.pad(alpha, ((0, 0), (count, 0)), constant_values=-jnp.inf)
    return padded[:, : alpha.shape[1]]


def _states(labels, blank):
    """The labels with the blank before and after each: (b, 2 * s + 1)."""
    count, length = labels.shape
    blanks = jnp.full((count, length + 1), blank, labels.dtype)
    pairs = jnp.stack([blanks[:, :length], labels], 2)
    return jnp.concatenate([jnp.reshape(pairs, (count, 2 * length)), blanks[:, length:]], 1)


def _skips(states, blank):
    """Whether a path may reach a state from the one before the last: from a label to another."""
    before = jnp.pad(states, ((0, 0), (2, 0)), constant_values=blank)[:, : states.shape[1]]
    is_first = lax.broadcasted_iota(jnp.int32, states.shape, 1) < 2
    return (states != before) & (states != blank) & ~is_first


def _emissions(log_probs, states):
    """The log-probability of the label of each state, NaN for no label: (t, b, states)."""
    indices = jnp.where(states < 0, log_probs.shape[2], states)
    return jnp.take_along_axis(log_probs, indices[None], 2, mode="fill")


def _padded(targets, input_lengths, target_lengths, blank):
    """The labels as (b, s), blank behind the end, and the lengths as arrays."""
    inputs, ends = (
        jnp.asarray(lengths).astype(jnp.int32) for lengths in (input_lengths, target_lengths)
    )
    labels = targets.astype(jnp.int32)
    if targets.ndim == 1:
        starts = jnp.cumsum(ends) - ends
        places = starts[:, None] + jnp.arange(_longest(targets, target_lengths), dtype=jnp.int32)
        empty = jnp.zeros_like(places)
        labels = jnp.take(labels, places, mode="clip") if targets.size else empty
    is_label = jnp.arange(labels.shape[1], dtype=jnp.int32) < ends[:, None]
    return jnp.where(is_label, labels, blank), inputs, ends


def _longest(targets, target_lengths):
    known = isinstance(target_lengths, tuple | list)
    return max(target_lengths) if known else targets.shape[0]


# the gradient


def ctc_loss_backward(
    grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
):
    """`-grad` times the probability of each label at each time, given the labels of the sample.

    A sample with an infinite loss gets NaN, or 0 with `zero_infinity`.
    """
    labels, inputs, ends = _padded(targets, input_lengths, target_lengths, blank)
    states = _states(labels, blank)
    joint, likelihood = _joint(_emissions(log_probs, states), states, blank, inputs, ends)
    possible = jnp.isfinite(likelihood)
    shares = jnp.exp(joint - jnp.where(possible, likelihood, 0)[:, None])
    gradients = -_gathered(shares, states, log_probs.shape[2], blank) * grad[:, None]
    if not zero_infinity:
        times = jnp.arange(log_probs.shape[0], dtype=inputs.dtype)[:, None]
        undefined = ~possible & (times < inputs)
        gradients = jnp.where(undefined[:, :, None], jnp.nan, gradients)
    return gradients


def _joint(emissions, states, blank, inputs, ends):
    """The log-probability of the paths through each state at each time, (t, b, states), and that of
    all paths, (b,). The paths from a state to the end are those to it in the reversed sample.
    """
    times, count, width = emissions.shape
    back = _reversed(width, 2 * ends)
    late = _reversed(times, inputs - 1).T
    turned = jnp.take_along_axis(emissions, late[:, :, None], 0)
    turned = jnp.take_along_axis(turned, back[None], 2)
    both = jnp.concatenate([emissions, turned], 1)
    turned_states = jnp.take_along_axis(states, back, 1)
    skips = _skips(jnp.concatenate([states, turned_states]), blank)
    before, after, last = _forward(both, skips, jnp.concatenate([inputs, inputs]))
    onward = jnp.take_along_axis(before[:, count:], back[None], 2)
    onward = jnp.take_along_axis(onward, late[:, :, None], 0)
    reached = jnp.arange(times, dtype=inputs.dtype)[:, None] < inputs
    inside = jnp.arange(width, dtype=ends.dtype) <= 2 * ends[:, None]
    joint = jnp.where(reached[:, :, None] & inside, after[:, :count] + onward, -jnp.inf)
    return joint, _at_the_end(last[:count], ends)


def _reversed(extent, last):
    """Positions in reverse order up to `last`, for each sample: (b, extent); 0 behind it."""
    return jnp.maximum(last[:, None] - jnp.arange(extent, dtype=last.dtype), 0)


def _gathered(shares, states, classes, blank):
    """The sums of the shares of equal labels: (t, b, classes)."""
    times, count, _ = shares.shape
    of_blanks = jnp.sum(shares[:, :, 0::2], 2)
    rows = jnp.arange(count)[:, None]
    sums = jnp.zeros((count, classes, times), shares.dtype)
    of_labels = jnp.transpose(shares[:, :, 1::2], (1, 2, 0))
    sums = sums.at[rows, states[:, 1::2]].add(of_labels, mode="drop")
    return jnp.transpose(sums.at[:, blank].add(of_blanks.T), (2, 0, 1))


# errors


def _check(log_probs, targets, input_lengths, target_lengths, blank):
    promotion.refuse("ctc_loss", log_probs, BOOLEAN, INTEGRAL, COMPLEX)
    if log_probs.dtype.itemsize == 2:
        kind = dtypes.from_numpy(log_probs.dtype).scalar_type
        raise NotImplementedError(f"\"ctc_loss\" not implemented for '{kind}': use float32")
    for role, tensor, dims in (("log_probs", log_probs, (3,)), ("targets", targets, (1, 2))):
        if tensor.ndim not in dims:
            expected = "3-dimensional tensor" if role == "log_probs" else "1 to 2 dimensions"
            raise RuntimeError(
                f"Expected {expected}, but got {tensor.ndim}-dimensional tensor for '{role}' of "
                "ctc_loss"
            )
    if not log_probs.size:
        raise RuntimeError("log_probs tensor must not be empty: ctc_loss")
    if not jnp.issubdtype(targets.dtype, jnp.integer):
        kind = dtypes.from_numpy(targets.dtype).scalar_type
        raise RuntimeError(f"expected targets of ctc_loss to be Long or Int, but got {kind}")
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError(
            f"blank must be in label range: {blank} of {log_probs.shape[2]} labels of ctc_loss"
        )
    _check_lengths(log_probs.shape[1], targets, input_lengths, target_lengths)


def _check_lengths(count, targets, input_lengths, target_lengths):
    for role, argument in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        lengths = argument if hasattr(argument, "dtype") else numpy.asarray(argument, numpy.int64)
        if not jnp.issubdtype(lengths.dtype, jnp.integer):
            raise RuntimeError(f"{role} must be integral: those of ctc_loss")
        if lengths.shape != (count,):
            raise RuntimeError(
                f"{role} must be of size batch_size, which is {count}: its shape is "
                f"{list(lengths.shape)}"
            )
    if targets.ndim == 2 and targets.shape[0] != count:
        raise RuntimeError(
            f"Expected tensor to have size {count} at dimension 0, but got size "
            f"{targets.shape[0]} for 'targets' of ctc_loss"
        )


def _refuse_wrong_lengths(
    log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False
):
    """Raise RuntimeError for lengths outside of the tensors, IndexError for another label."""
    inputs, ends, labels = map(numpy.asarray, (input_lengths, target_lengths, targets))
    if log_probs.ndim != 3 or inputs.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        return
    _check_range("input_lengths", inputs, log_probs.shape[0])
    _check_range("target_lengths", ends, None)
    if labels.ndim == 1 and labels.size != ends.sum():
        raise RuntimeError(
            f"Expected tensor to have size {ends.sum()} at dimension 0, but got size "
            f"{labels.size} for 'targets' of ctc_loss"
        )
    if labels.ndim == 2:
        longest = ends.max(initial=0)
        if labels.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size "
                f"{labels.shape[1]} for 'targets' of ctc_loss"
            )
        if len(labels) != len(ends):
            return
        labels = labels[numpy.arange(labels.shape[1]) < ends[:, None]]
    wrong = labels[(labels < 0) | (labels >= log_probs.shape[2])]
    if wrong.size:
        raise IndexError(
            f"Target {wrong[0]} is out of bounds: ctc_loss has {log_probs.shape[2]} labels"
        )


def _check_range(role, lengths, greatest):
    if lengths.min(initial=0) < 0:
        raise RuntimeError(
            f"Expected {role} to have value at least 0, but got value {lengths.min()} (while "
            "checking arguments for ctc_loss)"
        )
    if greatest is not None and lengths.max(initial=0) > greatest:
        raise RuntimeError(
            f"Expected {role} to have value at most {greatest}, but got value {lengths.max()} "
            "(while checking arguments for ctc_loss)"
        )


ctc_loss.precondition = _refuse_wrong_lengths
