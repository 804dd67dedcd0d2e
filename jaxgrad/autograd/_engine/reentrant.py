"""Backward passes deep inside of each other, for which one thread's stack has no room."""

from __future__ import annotations

import contextvars
import threading

# so many passes, each begun inside the one before, one thread's stack has room for
DEPTH = 20


def elsewhere(function):
    """Run a function in a thread of its own, whose stack is empty, with the modes that hold here.

    Nobody goes on before it has ended, be it that this thread is interrupted.
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
