"""Attributes that a Function's author gives to `ctx` under names that its node needs itself.

`ctx` is the call's node. What an author calls `ctx.edges` or `ctx.reverse` is put aside when
forward has run, and is back in its place while the author's rules run.
"""

from __future__ import annotations

from ...tape.node import Extras


def reserved(node_class, authors) -> frozenset[str]:
    """The names that a node of this class needs, but for those that are the author's to set."""
    return frozenset(
        name for name in dir(node_class) if not name.startswith("__") and name not in authors
    )


def put_aside(ctx):
    """Put aside what forward has set. Raises AttributeError for names that begin with `_`."""
    attributes = vars(ctx)
    taken = ctx._reserved.intersection(attributes)
    if isinstance(attributes.get("extras"), Extras):
        taken -= {"extras"}
    for name in sorted(taken):
        if name.startswith("_"):
            raise AttributeError(f"{ctx.name()}: ctx.{name} is a name that the call needs itself")
    if taken:
        ctx._authors = {name: attributes.pop(name) for name in taken}


def call(ctx, rule, *args):
    """A rule of the author's, with what was put aside in its place."""
    if ctx._authors is None:
        return rule(ctx, *args)
    attributes, authors = vars(ctx), ctx._authors
    own = {name: attributes[name] for name in authors if name in attributes}
    attributes.update(authors)
    try:
        return rule(ctx, *args)
    finally:
        ctx._authors = {name: attributes.pop(name) for name in authors if name in attributes}
        attributes.update(own)
