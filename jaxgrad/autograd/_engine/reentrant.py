"""Nested backward passes. If they nest deeply, they would overflow the stack of one thread."""

from __future__ import annotations

import contextvars
import threading

# every so many nested passes, one runs in a new thread
DEPTH = 20


def run_in_thread(function):
    """Run a function in a new thread, which has an empty stack, with the modes of this context.

    Waits until it has ended, even if this thread is interrupted.
    """
    raised = []

    def run():
        try:
            context.run(function)
        except BaseException as error:
            raised.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    finally:
        thread.join()
    if raised:
        raise raised[0]
