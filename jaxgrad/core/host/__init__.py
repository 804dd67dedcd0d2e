"""The host executor: runs a program by NumPy and SciPy, without compiling it.

`equation` has the form in which it sees a program, `block` makes a function of one, and the other
modules have the rules, one for each primitive of JAX.
"""
