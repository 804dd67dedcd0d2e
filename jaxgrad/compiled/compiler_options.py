"""The options with which XLA compiles a program."""

from __future__ import annotations

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from ..core.jaxprs import equations_of

# XLA gives parts of a program to the library YNN on CPUs; this says which.
BY_YNN = "xla_cpu_experimental_ynn_fusion_type"

# On CPUs XLA fuses a write to a part of an array with what computes the written value. Where a
# reshape stands between both, it writes in place and does not see that the value is cut out of
# another part of the array, which it has overwritten (openxla/xla issue 49176). Without this pass
# it sees that. The step of a transformer takes 1.5 % longer without it, that of a convolutional
# network 1 %, so only programs that write to parts leave it out. The emitter of YNN ends the
# process where this pass was left out, so these programs do without it; a transformer's step takes
# 5 % longer there, and 15 % on 16 cores.
HIDES_WRITES = "reshape-decomposer"
WRITES = ("dynamic_update_slice", "scatter")

# YNN adds up an array two to three times as fast as XLA, which adds one element after the other.
# Its convolutions, and the products that these become, are slower than Eigen's: the steps of
# convolutional networks take 5 to 20 % longer with them. Only the many small products of groups are
# faster by YNN, by half.
SUMS, PRODUCTS = "LIBRARY_FUSION_TYPE_REDUCE", "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"
# removes barriers before XLA fuses operators; rules/convolution.py has one
REMOVES_BARRIERS = "cse_barrier_expander"
CONVOLUTION = "conv_general_dilated"


def options_for(jaxpr: Jaxpr) -> dict | None:
    """The compiler options of a program."""
    if jax.default_backend() != "cpu":
        return None
    options, left_out = {}, []
    convolutions = [
        equation for equation in equations_of(jaxpr) if equation.primitive.name == CONVOLUTION
    ]
    if convolutions:
        has_groups = any(map(has_wide_groups, convolutions))
        options[BY_YNN] = f"{SUMS},{PRODUCTS}" if has_groups else SUMS
        left_out.append(REMOVES_BARRIERS)
    if writes_to_parts(jaxpr):
        options[BY_YNN] = ""
        left_out.append(HIDES_WRITES)
    return options | {"xla_disable_hlo_passes": ",".join(left_out)} if options else None


def has_wide_groups(convolution) -> bool:
    """Whether a convolution has groups of several channels."""
    _, of_weight, _ = convolution.params["dimension_numbers"]
    channels = convolution.invars[1].aval.shape[of_weight[1]]
    return convolution.params["feature_group_count"] > 1 and channels > 1


def writes_to_parts(jaxpr: Jaxpr) -> bool:
    """Whether a program writes to parts of arrays. Writes to a new array of one value do not count,
    such as the gradient of an embedding: no part of it is a value to write.
    """
    uniform = {id(equation.outvars[0]) for equation in jaxpr.eqns if is_uniform(equation)}
    return any(
        (equation.primitive.name.startswith(WRITES) and id(equation.invars[0]) not in uniform)
        or any(map(writes_to_parts, inner_of(equation)))
        for equation in jaxpr.eqns
    )


def is_uniform(equation) -> bool:
    """Whether an equation makes an array of one value, which the program has as a literal."""
    is_broadcast = equation.primitive.name == "broadcast_in_dim"
    return is_broadcast and isinstance(equation.invars[0], Literal)


def inner_of(equation) -> list[Jaxpr]:
    """The jaxprs of an equation, such as the branches of a `cond`."""
    parameters = jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda value: isinstance(value, Jaxpr | ClosedJaxpr)
    )
    closed = [parameter for parameter in parameters if isinstance(parameter, Jaxpr | ClosedJaxpr)]
    return [jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr for jaxpr in closed]
