"""Kinds of programs that are written only where they are asked for: what compiled functions refuse,
or are known to do wrongly.
"""

KINDS = (
    "draws",  # random numbers of Python
    "seeding",  # inside of the function
    "views",  # several tensors of the world that share memory
    "shapes",  # that change in place
    "lists",  # among the arguments, which the function changes
    "optimizers",  # that the function makes
    "dependent results",  # a gradient from one to another
    "second derivatives",  # after the state has changed
)

on: set[str] = set()
