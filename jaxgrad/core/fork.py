"""Whether this process is a forked copy, which has none of XLA's threads."""

REFUSAL = (
    "jaxgrad had tensors before this process was forked, and the threads of XLA are not in the "
    "copy, which would wait for them forever: make tensors of data here and compute in NumPy, "
    'or use the start method "spawn", as by multiprocessing.set_start_method("spawn"), or fork '
    "before the first tensor is made"
)

# whether this process is such a copy, and what its kernels say of that
is_forked, _refusal = False, REFUSAL


def refuse_call(*_):
    """Raise RuntimeError, as every kernel of this forked process does."""
    raise RuntimeError(_refusal)


def note(refusal: str) -> bool:
    """Note that this process is such a copy, and what its kernels say. Whether that is new."""
    global is_forked, _refusal
    is_new, is_forked, _refusal = not is_forked, True, refusal
    return is_new
