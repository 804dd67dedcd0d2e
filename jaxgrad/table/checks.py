"""Checks of a whole entry, after the checks of its single formulas."""

import ast

from .formula import Formula, Word
from .rule import BROKEN, is_integral

CHOICES = 'write a formula, `zeros`, `non_differentiable` or `not_implemented("why")`'


def check(rule, mistake):
    """Call `mistake(place, cause, cure)` for everything that is wrong with `rule`."""
    check_inputs(rule, mistake)
    if not rule.differentiable_outputs:
        return
    check_number_of_gradients(rule, mistake)
    if not has_wrong_styles(rule, mistake):
        for names, formula in gradient_formulas(rule):
            check_gradient(rule, names, formula, mistake)
    check_overwritten(rule, mistake)
    check_write(rule, mistake)
    check_constant_outputs(rule, mistake)
    check_words(rule, mistake)
    check_tangents(rule, mistake)


def gradient_formulas(rule):
    return [(names, f) for names, f in rule.gradients if isinstance(f, Formula)]


def tangent_formulas(rule):
    return [(name, f) for name, f in rule.tangents.items() if isinstance(f, Formula)]


# inputs


def check_inputs(rule, mistake):
    known = {name for names, _ in rule.gradients for name in names}
    for name in rule.tensor_arguments:
        if name not in known:
            mistake(rule.places["name"], f"the Tensor {name!r} has no gradient", CHOICES)


def check_number_of_gradients(rule, mistake):
    """A formula for several inputs returns one gradient for each, where it is a tuple."""
    lists = {a.name for a in rule.schema.arguments if a.type.list}
    for names, formula in gradient_formulas(rule):
        tree = formula.tree
        items = len(tree.elts) if isinstance(tree, ast.Tuple) else None
        if items not in (None, len(names)) and not (len(names) == 1 and names[0] in lists):
            cause = f"a tuple of {items} for {len(names)} inputs"
            mistake(formula.place(""), cause, "write one gradient for each input of the key")


# a gradient formula names output gradients in one of three ways: grad, grads[i], grad_<output>


def named_gradients(rule, formula):
    """The names `grad_<output>` that a formula reads."""
    arguments = rule.schema.names
    return sorted(
        f"grad_{name}"
        for name in rule.outputs
        if f"grad_{name}" in formula.names and f"grad_{name}" not in arguments
    )


def has_wrong_styles(rule, mistake):
    formulas = [formula for _, formula in gradient_formulas(rule)]
    single = [f for f in formulas if "grad" in f.names]
    several = [f for f in formulas if "grads" in f.names]
    by_name = [f for f in formulas if named_gradients(rule, f)]
    if single and several:
        cause = "its formulas mix 'grad' and 'grads'"
        mistake(single[0].place("grad"), cause, "write grads[0] for grad")
    elif by_name and (single or several):
        name = named_gradients(rule, by_name[0])[0]
        cause = f"its formulas mix {name!r} with 'grad' or 'grads'"
        mistake(by_name[0].place(name), cause, "name all gradients in one way")
    elif several and all(reads_only_first(formula) for formula in several):
        cause = "its formulas read no gradient but 'grads[0]'"
        cure = "write grad if the first output is the only differentiable one; else use the others"
        mistake(several[0].place("grads"), cause, cure)
    else:
        return False
    return True


def reads_only_first(formula):
    nodes = [*ast.walk(formula.tree)]
    reads = [n for n in nodes if isinstance(n, ast.Name) and n.id == "grads"]
    items = [i for i in nodes if isinstance(i, ast.Subscript) and i.value in reads]
    return len(items) == len(reads) and indices(formula) == {0}


def indices(formula, name="grads"):
    return {index for base, index in formula.indexed if base == name}


def check_gradient(rule, names, formula, mistake):
    """A gradient formula reads at least one output gradient, and only those that exist."""
    by_name, outputs = named_gradients(rule, formula), rule.differentiable_outputs
    if not by_name and not formula.names & {"grad", "grads"}:
        cause = f"the gradient of {' and '.join(map(repr, names))} reads no gradient of an output"
        mistake(formula.place(""), cause, "use grad, or write `zeros` or `non_differentiable`")
    for name in by_name:
        if name.removeprefix("grad_") not in outputs:
            cause = f"{name!r} is the gradient of an output that is not differentiable"
            mistake(formula.place(name), cause, "see output_differentiability")
    check_single(rule, formula, mistake)
    check_bounds(rule, names, formula, mistake)


def check_single(rule, formula, mistake):
    if "grad" not in formula.names:
        return
    if rule.returns_list:
        cause, cure = "'grad' where the output is a list", "write grads, a list of gradients"
        mistake(formula.place("grad"), cause, cure)
    elif len(rule.differentiable_outputs) > 1:
        cause = f"'grad' where {len(rule.differentiable_outputs)} outputs are differentiable"
        mistake(formula.place("grad"), cause, SEVERAL)


SEVERAL = "write grads[0], grads[1], ..., or output_differentiability with one True: [True, False]"


def check_bounds(rule, names, formula, mistake):
    sizes = {"grad_input_mask": len(names)}
    if rule.schema.returns_known and not rule.returns_list:
        sizes["grads"] = len(rule.differentiable_outputs)
    for name, size in sizes.items():
        beyond = sorted(i for i in indices(formula, name) if not 0 <= i < size)
        if beyond:
            what = "differentiable outputs" if name == "grads" else "inputs of this formula"
            cause = f"'{name}[{beyond[0]}]' is out of bounds"
            mistake(formula.place(name), cause, f"there are {size} {what}, counted from 0")


# values that must not be read


def check_overwritten(rule, mistake):
    """The formulas of an in-place operator cannot read the value that it overwrites."""
    if not rule.inplace:
        return
    for formula in rule.formulas:
        for argument in rule.schema.written:
            for name in sorted(formula.values & {argument, f"{argument}_p"}):
                cause = f"{name!r} is overwritten before the formula reads it"
                mistake(formula.place(name), cause, "write result, its new value")


def check_write(rule, mistake):
    """A view without `write:` needs a gradient formula, which then also writes through it."""
    if rule.is_view and rule.write is None and is_word(rule.gradient(rule.schema.names[0])):
        cure = "write it: the new self, of self, value and the arguments"
        mistake(rule.places["name"], "a view without a gradient formula and without `write:`", cure)


def check_constant_outputs(rule, mistake):
    """A formula cannot read a float output that has no derivative.

    Second derivatives would treat it as a constant.
    """
    constant = [
        (i, name)
        for i, name in enumerate(rule.outputs)
        if name not in rule.differentiable_outputs and not is_integral(name) and is_tensor(rule, i)
    ]
    for formula in rule.formulas:
        for i, output in constant:
            for name in sorted(formula.values & {output, f"result{i}"}):
                cause = f"{name!r} is read, an output without a derivative: a constant when"
                cure = "give it one and output_differentiability True, or compute it in a helper"
                mistake(formula.place(name), f"{cause} differentiated again", f"{cure}; {INTEGERS}")


INTEGERS = "call it indices, mask, count or is_<something> if it has no floats"


def is_tensor(rule, position):
    return not rule.schema.returns_known or rule.schema.returns[position].type.tensor


# forward mode


def check_words(rule, mistake):
    for name, word in rule.tangents.items():
        if not isinstance(word, Word):
            continue
        if word.kind == "auto_element_wise":
            check_element_wise(rule, rule.places[name], mistake)
        if word.kind == "auto_linear" and len(rule.differentiable_outputs) > 1:
            cause = "auto_linear for one of several differentiable outputs"
            mistake(rule.places[name], cause, "write a formula, or auto")
        if word.kind == "auto_linear" and not rule.differentiable_inputs:
            cause = "auto_linear without a differentiable input"
            mistake(rule.places[name], cause, "leave the line out")


def check_element_wise(rule, place, mistake):
    inputs = rule.differentiable_inputs
    lists = [a.name for a in rule.schema.arguments if a.type.list and a.name in inputs]
    if rule.inplace:
        cause, cure = "auto_element_wise for an in-place operator", "write a formula of result"
        mistake(place, cause, cure)
    elif len(inputs) != 1 or len(rule.differentiable_outputs) != 1 or lists:
        cause = "auto_element_wise needs one differentiable input, no list, and one such output"
        mistake(place, cause, "write a formula, auto_linear or auto")
    elif is_word(rule.gradient(inputs[0])):
        cause = f"auto_element_wise needs a formula for the gradient of {inputs[0]!r}"
        mistake(place, cause, "write one, or auto")


def is_word(value):
    return isinstance(value, Word) and value != BROKEN


def check_tangents(rule, mistake):
    for name in rule.outputs:
        if name in rule.tangents and name not in rule.differentiable_outputs:
            cause = f"a forward-mode formula for {name!r}, which is not differentiable"
            mistake(rule.places[name], cause, "see output_differentiability")
        if rule.tangents and name in rule.differentiable_outputs and name not in rule.tangents:
            cause = f"the output {name!r} has no forward-mode formula, and others have"
            mistake(rule.places["name"], cause, "write one, or leave all out")
    for name, formula in tangent_formulas(rule):
        check_tangent(rule, name, formula, mistake)
    check_ignored(rule, mistake)


def check_tangent(rule, output, formula, mistake):
    tangents = {f"{name}_t" for name in rule.tensor_arguments}
    if not formula.names & tangents:
        cause = f"the forward-mode formula of {output!r} reads no tangent"
        mistake(formula.place(""), cause, f"it is made of {' and '.join(sorted(tangents))}")


def check_ignored(rule, mistake):
    """The forward-mode formulas read the tangent of each input that has a gradient formula."""
    if not rule.tangents or len(tangent_formulas(rule)) < len(rule.tangents):
        return
    read = frozenset().union(*(formula.names for _, formula in tangent_formulas(rule)))
    reads_tangents = any(f"{name}_t" in read for name in rule.tensor_arguments)
    for names, value in rule.gradients:
        has_gradient = isinstance(value, Formula) or value.kind == "auto"
        for name in names if has_gradient and reads_tangents else ():
            if f"{name}_t" not in read:
                place = rule.places[next(iter(rule.tangents))]
                cause = f"no forward-mode formula reads '{name}_t', and {name!r} has a gradient"
                mistake(place, cause, "add its part")
