"""How long a test waits for what comes at once, unless something hangs."""

import time

# No test is about speed. A process or a thread that works ends long before, on a machine that is
# slow and busy too: only one that would never end is given up.
LIMIT = 900  # seconds
FOREVER = 4 * LIMIT  # how long something sleeps that is to be ended


def eventually(condition, what):
    """Wait until `condition()` holds; `what` says what hangs otherwise."""
    interval = 0.02
    for _ in range(int(LIMIT / interval)):
        if condition():
            return
        time.sleep(interval)
    raise AssertionError(what)
