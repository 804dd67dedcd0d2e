"""The host executor: runs a program by NumPy and SciPy, without compiling it.

`equation` defines the equations of a program, `block` turns a jaxpr into a function, and the other
modules have the rules, one for each primitive of JAX.
"""
