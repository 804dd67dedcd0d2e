"""Attributes that a Function's author gives to `ctx` under names that its node needs itself.

`ctx` is the call's node. What an author calls `ctx.edges` or `ctx.reverse` is put aside when
forward has run, and is back in its place while the author's rules run.
"""

from __future__ import annotations

from ..nodes import Extras

# what the engine reads of a node
OF_NODES = frozenset(
    [
        *("edges", "extras", "hooks_of", "more", "name", "named", "output_count", "outputs"),
        *("retain", "retained_at", "reverse", "run", "saved", "sequence"),
    ]
)
# what a call notes on its ctx
OWN = frozenset(
    [
        *("_again", "_args", "_authors", "_avals", "_checked", "_checks", "_conformed", "_in_jvp"),
        *(
            "_inputs",
            "_input_metadata",
            "_moving",
            "_raw_saved_tensors",
            "_saved",
            "_sequence_nr",
            "_tensors",
        ),
    ]
)
ALL = OF_NODES | OWN


def put_aside(ctx):
    """Put aside what forward has set. Raises AttributeError for names that the call needs."""
    taken = ALL.intersection(vars(ctx))
    if isinstance(vars(ctx).get("extras"), Extras):
        taken -= {"extras"}
    for name in sorted(taken & OWN):
        raise AttributeError(f"{ctx.name()}: ctx.{name} is a name that the call needs itself")
    if taken:
        ctx._authors = {name: vars(ctx).pop(name) for name in taken}


def call(ctx, rule, *args):
    """A rule of the author's, with what was put aside in its place."""
    if ctx._authors is None:
        return rule(ctx, *args)
    attributes, authors = vars(ctx), ctx._authors
    own = {name: attributes[name] for name in OF_NODES.intersection(attributes)}
    attributes.update(authors)
    try:
        return rule(ctx, *args)
    finally:
        ctx._authors = {name: attributes.pop(name) for name in authors if name in attributes}
        attributes.update(own)
