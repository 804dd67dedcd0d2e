"""Rules of primitives that run jaxprs: branches, loops, and maps of tangents."""

from __future__ import annotations

import jax
import numpy

from ..jax_internals import extent_of_carry
from .block import Block
from .equation import NotOnHostError, rule


@rule("cond")
def _cond(equation):
    branches = [branch.function for branch in equation.params["branches"]]
    last = len(branches) - 1

    def cond(index, *operands):
        return branches[min(max(int(index), 0), last)](*operands)

    return cond


@rule("while")
def _while(equation):
    params = equation.params
    test, body = params["cond_jaxpr"].function, params["body_jaxpr"].function
    of_test = params["cond_nconsts"]
    of_both = of_test + params["body_nconsts"]
    if params["cond_jaxpr"].outputs[0].shape:
        raise NotOnHostError("while with a batch of conditions")

    def loop(*operands):
        consts, body_consts = operands[:of_test], operands[of_test:of_both]
        carried = [*operands[of_both:]]
        while test(*consts, *carried)[0]:
            carried = body(*body_consts, *carried)
        return carried

    return loop


@rule("scan")
def _scan(equation):
    params, extent = equation.params, extent_of_carry(equation.params)
    if extent is None:
        raise NotOnHostError("scan with operands in an unknown order")
    begin, end = extent
    body, carried_count = params["jaxpr"].function, end - begin
    steps = range(params["length"])
    steps = steps[::-1] if params["reverse"] else steps
    stacked_forms = equation.outputs[carried_count:]

    def scan(*operands):
        consts, carried, items = operands[:begin], [*operands[begin:end]], operands[end:]
        stacked = [numpy.empty(*form) for form in stacked_forms]
        for step in steps:
            results = body(*consts, *carried, *[item[step] for item in items])
            carried = results[:carried_count]
            for whole, part in zip(stacked, results[carried_count:], strict=True):
                whole[step] = part
        return carried + stacked

    return scan


@rule("custom_linear_solve")
def _custom_linear_solve(equation):
    # both are tuples of the same order: matvec, vecmat, solve, transpose_solve
    lengths = equation.params["const_lengths"]
    solve = equation.params["jaxprs"][2].function
    begin, end, count = sum(lengths[:2]), sum(lengths[:3]), sum(lengths)
    return lambda *operands: solve(*operands[begin:end], *operands[count:])


@rule("jaxgrad_tangent_map")
def _tangent_map(equation):
    tangent_map, saved = equation.params["map"], equation.params["saved"]

    def forward(*arrays):
        return tuple(tangent_map.forward(arrays[:saved], arrays[saved:]))

    try:
        with jax.enable_x64(True):  # as the forms say, whatever the user has
            structs = [jax.ShapeDtypeStruct(*form) for form in equation.inputs]
            block = Block(jax.make_jaxpr(forward)(*structs))
    except TypeError as error:  # an array of keys among the residuals
        raise NotOnHostError(equation.name) from error
    if block.inputs != equation.inputs or block.outputs != equation.outputs:
        raise NotOnHostError("a map of tangents in other types")
    return block.function
