"""Tables: what becomes of entries, and the mistakes that are found in them."""

import re
import traceback
from pathlib import Path

import pytest

from jaxgrad.table import Formula, TableError, Word, load, loads, parse_schema
from jaxgrad.table.functions import NAMESPACES, words

SAMPLE = Path(__file__).with_name("sample.yaml")
HELPERS = words(
    """abs argmax atan2_backward cat_backward cat_jvp clamp_backward clamp_values gather
    gather_backward gelu gelu_backward gelu_tanh_backward geqrf index_backward index_forward
    linalg_qr max native_norm native_norm_backward native_norm_jvp pow pow_backward qr_backward
    qr_jvp rstd_jvp sgn slogdet slogdet_backward slogdet_jvp slogdet_sign_jvp sum sum_backward
    unbind"""
)


ONE = "op(Tensor self) -> Tensor"
TWO = "op(Tensor self) -> (Tensor a, Tensor b)"
OLD = "op(Tensor self)"
FIRST = "output_differentiability: [True, False]"
VIEW = "op(Tensor(a) self) -> Tensor(a)"
INPLACE = "op_(Tensor(a!) self) -> Tensor(a!)"
LIST = "op(Tensor self) -> Tensor[]"


def sample():
    return load(SAMPLE, HELPERS)


def rule(name, number=0):
    return sample().rules(name)[number]


def mistakes(text, functions=("f", "g"), **known):
    with pytest.raises(TableError) as caught:
        loads(text, "t.yaml", functions, **known).check()
    return caught.value.mistakes


def entry(*lines, schema="op(Tensor self, Tensor other) -> Tensor"):
    first = parse_schema(schema).names[0]
    return "\n  ".join([f"- name: {schema}", f"forward: f({first})", *lines]) + "\n"


def only(text, **known):
    (mistake,) = mistakes(text, **known)
    return mistake


# rules


def test_sample_is_sound():
    table = sample()
    table.check()
    assert len(table) == 32
    assert len(table.names) == 31  # `add` has two overloads
    assert table.names[:3] == ("abs", "add", "mul")
    assert "sin" in table
    assert "sinh" not in table


def test_rule():
    sin = rule("sin")
    assert sin.schema.full_name == "sin"
    assert (sin.path, sin.line) == (str(SAMPLE), 24)
    assert sin.forward.text == "lax.sin(self)"
    ((names, formula),) = sin.gradients
    assert names == ("self",)
    assert (formula.text, formula.line, formula.column) == ("grad * self.cos().conj()", 26, 9)
    assert formula.label == "sin.self"
    assert sin.tangents == {"result": Word("auto_element_wise")}
    assert sin.outputs == sin.differentiable_outputs == ("result",)
    assert sin.output_differentiability == (True,)
    assert sin.differentiable_inputs == sin.tensor_arguments == ("self",)
    assert sin.places == {"name": (24, 9), "self": (26, 9), "result": (27, 11)}
    assert sin.formulas == (formula,)
    assert not sin.inplace
    assert not sin.returns_list


def test_overloads():
    assert [r.schema.full_name for r in sample().rules("add")] == ["add.Tensor", "add.Scalar"]


def test_rules_are_read_once():
    table = sample()
    assert table.rules("sin") is table.rules("sin")
    with pytest.raises(KeyError):
        table.rules("sinh")


def test_words():
    assert rule("sgn").gradients == ((("self",), Word("zeros")),)
    assert rule("geqrf").gradient("self") == Word("not_implemented", "geqrf")
    assert rule("addcdiv").gradient("tensor2") == Word("auto")
    assert rule("neg").tangents["result"] == Word("auto_linear")
    assert rule("gather").non_differentiable == {"index"}
    assert rule("gather").differentiable_inputs == ("self",)


def test_one_formula_for_several_inputs():
    ((names, formula),) = rule("atan2").gradients
    assert names == ("self", "other")
    assert formula.calls == {"atan2_backward"}
    assert formula.label == "atan2.self,other"


def test_one_formula_for_several_outputs():
    tangents = rule("linalg_qr").tangents
    assert [formula.element for formula in tangents.values()] == [0, 1]
    both = {"A_t": 1, "Q": 2, "R": 3, "mode": "r"}
    results = [
        f.compile(tuple(both), {"qr_jvp": lambda *a: a})(*both.values()) for f in tangents.values()
    ]
    assert results == [1, 2]


def test_no_differentiable_output():
    argmax = rule("argmax")
    assert argmax.gradients == ((("self",), Word("non_differentiable")),)
    assert argmax.differentiable_outputs == ()


@pytest.mark.parametrize(
    ("name", "outputs", "flags"),
    [
        ("max", ("values", "indices"), (True, False)),
        ("linalg_qr", ("Q", "R"), (True, True)),
        ("slogdet", ("sign", "logabsdet"), (True, True)),
        ("native_norm", ("result0", "result1"), (True, True)),
        ("argmax", ("result",), (False,)),
        ("exp_", ("result",), (True,)),
        ("addcdiv", ("result",), (True,)),
    ],
)
def test_outputs(name, outputs, flags):
    assert (rule(name).outputs, rule(name).output_differentiability) == (outputs, flags)


def test_outputs_of_early_pytorch_are_as_many_as_are_spoken_of():
    text = entry("self: f(grads[0], grads[2], result1)", schema="op(Tensor self)")
    assert loads(text, functions=["f"]).rules("op")[0].outputs == ("result0", "result1", "result2")


def overloads(*lines, name="op"):
    """The rules of overloads of one operator, which differ in the type of a second argument."""
    types = ("Tensor", "Scalar", "int", "bool", "str")
    text = "".join(
        entry(*parts, schema=f"{name}.{type_}(Tensor self, {type_} other) -> Tensor")
        for type_, parts in zip(types, lines, strict=False)
    )
    return loads(text, functions=["f"]).rules(name)


BOTH, SELF = ["self, other: f(grad)"], ["self: grad"]


@pytest.mark.parametrize(
    ("name", "lines", "nodes"),
    [
        ("op", [BOTH], ["OpBackward0"]),
        ("op", [BOTH, SELF, SELF], ["OpBackward0", "OpBackward1", "OpBackward2"]),
        ("op", [BOTH, ["self: zeros"], SELF], ["OpBackward0", "OpBackward1", "OpBackward2"]),
        ("op", [BOTH, [], SELF], ["OpBackward0", "OpBackward1", "OpBackward1"]),
        ("op", [BOTH, ["self: non_differentiable"], SELF], ["OpBackward0", *["OpBackward1"] * 2]),
        ("op", [BOTH, ["node: OpBackward0", *SELF]], ["OpBackward0", "OpBackward0"]),
        ("op", [["node: XBackward0", *BOTH], SELF], ["XBackward0", "OpBackward1"]),
        ("_log_softmax2d", [BOTH], ["LogSoftmax2DBackward0"]),
        ("nll_loss_forward", [BOTH, SELF], ["NllLossBackward0", "NllLossBackward1"]),
        ("forward_op", [BOTH], ["ForwardOpBackward0"]),
    ],
)
def test_nodes_are_numbered_as_in_torchgen(name, lines, nodes):
    """Counted are the overloads before that have derivatives, under whatever name."""
    assert [rule.node for rule in overloads(*lines, name=name)] == nodes


@pytest.mark.parametrize("schema", [ONE, TWO, "op(Tensor self, Tensor[] others)", LIST])
def test_an_entry_without_formulas_is_not_differentiable(schema):
    (rule,) = loads(entry(schema=schema), functions=["f"]).rules("op")
    assert rule.differentiable_outputs == rule.differentiable_inputs == ()
    assert not rule.is_recorded and rule.has_no_formulas


def test_an_entry_with_a_formula_for_one_tensor_needs_one_for_each():
    for line in ("self: grad", "self: zeros", "self: non_differentiable", "result: auto"):
        causes = [mistake.cause for mistake in mistakes(entry(line))]
        assert "the Tensor 'other' has no gradient" in causes


def test_an_in_place_entry_without_formulas_is_a_mistake():
    assert "the Tensor 'self' has no gradient" in only(entry(schema=INPLACE)).cause


def test_a_formula_says_grad_where_flags_leave_one_output():
    text = entry("self: f(grad)", FIRST, schema=TWO)
    assert loads(text, functions=["f"]).rules("op")[0].output_differentiability == (True, False)


@pytest.mark.parametrize("schema", [TWO, "op(Tensor self) -> (Tensor, Tensor, Tensor)"])
def test_no_output_loses_its_derivative_because_a_formula_says_grad(schema):
    mistake = only(entry("self: f(grad)", schema=schema))
    assert (mistake.line, mistake.column) == (3, 11)
    assert re.fullmatch(r"'grad' where [23] outputs are differentiable", mistake.cause)
    assert "output_differentiability" in mistake.cure


def test_an_output_of_integers_needs_no_flag():
    text = entry("self: f(grad)", schema="op(Tensor self) -> (Tensor values, Tensor indices)")
    assert loads(text, functions=["f"]).rules("op")[0].output_differentiability == (True, False)


CALLING = "- name: {}\n  forward: {}\n  self: grad\n"


@pytest.mark.parametrize(
    ("entries", "circle"),
    [
        ([("a(Tensor self) -> Tensor", "f(a(self))")], ["a"]),
        ([("a(Tensor self) -> Tensor", "b(self)"), ("b(Tensor self) -> Tensor", "self.a()")], "ab"),
        (
            [("a(Tensor self, int n) -> Tensor", "self if n == 0 else a(self, n - 1)")],
            ["a"],
        ),
        (
            [
                ("a.x(Tensor self) -> Tensor", "a(self, 1)"),
                ("a.y(Tensor self, int n) -> Tensor", "a(self)"),
            ],
            ["a.x"],
        ),
        ([("a(Tensor self) -> Tensor\n  alias: c", "f(self).c()")], ["a"]),
    ],
)
def test_a_value_that_calls_itself_is_a_mistake(entries, circle):
    complaints = mistakes("".join(CALLING.format(*pair) for pair in entries))
    assert [mistake.entry for mistake in complaints] == list(circle)
    assert all("calls itself" in mistake.cause for mistake in complaints)


def test_an_overload_may_call_another():
    entries = (
        ("a.x(Tensor self) -> Tensor", "f(self)"),
        ("a.y(Tensor self, int n) -> Tensor", "a(self)"),
    )
    text = "".join(CALLING.format(*pair) for pair in entries)
    loads(text, functions=["f"]).check()


def test_broken_entries_do_not_pass_when_read_late():
    text = entry("self: f(grad)\n  other: f(grat)") + entry(
        "self: f(grad)", schema="g(Tensor self)"
    )
    table = loads(text, functions=["f"])
    assert table.names == ("op", "g")
    assert table.rules("g")[0].gradient("self").calls == {"f"}
    for _ in range(2):
        with pytest.raises(TableError, match="did you mean 'grad'"):
            table.rules("op")
    with pytest.raises(TableError, match="did you mean 'grad'"):
        table.check()


def test_a_structural_mistake_is_raised_at_once_with_all_others():
    broken = entry("self: f(grat)", "other: f(grad)")
    complaints = mistakes(broken + "- name: op2(Tensor self)\n  result: auto\n- 3\n")
    assert [m.line for m in complaints] == [3, 5, 5, 7]


def test_all_formulas_of_the_sample_compile():
    scope = dict.fromkeys([*HELPERS, *sample().names], len)
    for name in sample().names:
        for rule in sample().rules(name):
            for formula in rule.formulas:
                assert callable(formula.compile(sorted(formula.names), scope))


def test_traceback_shows_the_line_of_the_table():
    text = entry("self: grad / 0", "other: zeros")
    table = loads(text, "<written by hand>", ["f"])
    with pytest.raises(ZeroDivisionError) as caught:
        table.rules("op")[0].gradient("self").compile(("grad",), {})(1)
    frame = traceback.extract_tb(caught.tb)[-1]
    assert (frame.filename, frame.lineno, frame.name) == ("<written by hand>", 3, "op.self")
    assert frame.line == "self: grad / 0"


def test_traceback_shows_the_line_of_a_file(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(entry("self: grad / 0", "other: zeros"))
    formula = load(path, ["f"]).rules("op")[0].gradient("self")
    path.unlink()
    with pytest.raises(ZeroDivisionError) as caught:
        formula.compile(("grad",), {})(1)
    frame = traceback.extract_tb(caught.tb)[-1]
    assert (frame.filename, frame.line) == (str(path), "self: grad / 0")


def test_places_in_quoted_and_folded_text():
    text = entry("self: 'f(grat)'", 'other: "f(\\x67rat)"')
    assert [(m.line, m.column) for m in mistakes(text)] == [(3, 12), (4, 10)]


def test_a_schema_may_be_folded():
    text = "- name: op(Tensor self,\n    Tensor other) -> Tensor\n  forward: f(self)\n"
    assert loads(text + "  self: f(grad)\n  other: zeros\n", functions=["f"]).rules("op")


def test_windows_line_ends_and_byte_order_mark():
    text = entry("self: f(grad)", "other: f(grat)")
    data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert str(only(data)).startswith("t.yaml:4:12: op: ")


def test_report():
    with pytest.raises(TableError) as caught:
        loads(entry("self: f(grad)", "other: f(grad) + x"), "t.yaml", ["f"]).check()
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        "t.yaml:4:20: op: in the formula of 'other': unknown name 'x'; in scope are "
        "grad, grad_input_mask, grads, other, result, result0, retain_variables, self"
    )


def test_known_operators_may_be_called():
    text = entry("self: h(grad)", "other: zeros")
    assert "unknown function 'h'" in only(text).cause
    loads(text, functions=["f"], operators=["h"]).check()


# mistakes of one entry


@pytest.mark.parametrize(
    ("schema", "lines", "said"),
    [
        # keys
        (
            ONE,
            ["sefl: f(grad)", "self: f(grad)"],
            "'sefl' is neither an argument nor an output; did you mean 'self'?",
        ),
        (
            ONE,
            ["self: f(grad)", "reslt: auto"],
            "'reslt' is neither an argument nor an output; did you mean 'result'?",
        ),
        ("op(Tensor self, int n) -> Tensor", ["self: grad", "n: grad"], "'n', which is no Tensor"),
        ("op(Tensor self, Tensor b) -> Tensor", ["self: grad"], "the Tensor 'b' has no gradient"),
        (ONE, ["result: auto"], "the Tensor 'self' has no gradient; write a formula, `zeros`"),
        ("op(Tensor self, Tensor b) -> Tensor", ["self, b: f(grad)", "b: grad"], "two formulas"),
        ("op(Tensor self, Tensor b) -> Tensor", ["self, c: f(grad)", "b: grad"], "'c' is neither"),
        ("op(Tensor self, Tensor b) -> Tensor", ["self, b: (grad, grad, grad)"], "a tuple of 3"),
        (ONE, ["self: (grad, grad)"], "a tuple of 2 for 1 inputs"),
        ("op(Tensor a, *, Tensor(a!) out) -> Tensor(a!)", ["a: grad", "out: grad"], "'out', which"),
        ("op(Tensor grad) -> Tensor", ["grad: f(grad)"], "an argument is called 'grad'"),
        ("op(Tensor result) -> Tensor", ["result: f(grad)"], "an argument is called 'result'"),
        ("op(Tensor a, int a_t) -> Tensor", ["a: f(grad)"], "an argument is called 'a_t'"),
        ("op(Tensor a) -> (Tensor a, Tensor b)", ["a: f(grads[0], grads[1])"], "an output are"),
        # views
        (ONE, ["self: f(grad)", "write: f(value)"], "`write:` for an operator that is no view"),
        (VIEW, ["self: f(grad)", "write: f(valeu)"], "'valeu'"),
        (VIEW, ["self: f(grad)", "write: f(value) +"], "in the formula of 'write'"),
        (ONE, ["self: f(grad)", "node: sum"], "'sum' is no name of a node"),
        (ONE, ["self: f(grad)", "node: Sum Backward"], "'Sum Backward' is no name of a node"),
        (ONE, ["self: f(grad)", "node: [Sum]"], "'' is no name of a node"),
        (ONE, ["output_differentiability: [False]", "node: Sum"], "it is never recorded"),
        (ONE, ["self: f(grad)", "node: OpBackward0"], "`node: OpBackward0` is the default; remove"),
        (VIEW, ["self: auto"], "a view without a gradient formula and without `write:`"),
        (
            "op(Tensor(a) self, int value) -> Tensor(a)",
            ["self: f(grad)", "write: f(value)"],
            "an argument called 'value'",
        ),
        (
            "op(Tensor self, int write) -> Tensor",
            ["self: f(grad)"],
            "an argument is called 'write'",
        ),
        # which gradient
        (TWO, ["self: grad * grads[1]"], "mix 'grad' and 'grads'; write grads[0] for grad"),
        (TWO, ["self: f(grads[0])"], "read no gradient but 'grads[0]'; write grad if"),
        (TWO, ["self: f(grads[0], grads[2])"], "'grads[2]' is out of bounds; there are 2"),
        (TWO, ["self: f(grads[0], grads[-1])"], "'grads[-1]' is out of bounds"),
        (TWO, ["self: grad_a * grads[1]"], "mix 'grad_a' with 'grad' or 'grads'"),
        (TWO, ["self: grad_a * grad"], "mix 'grad_a' with 'grad' or 'grads'"),
        (
            TWO,
            ["self: grad_b * f(grad_a)", "output_differentiability: [True, False]"],
            "'grad_b' is the gradient of an output that is not differentiable",
        ),
        (
            TWO,
            ["self: f(grad)", "output_differentiability: [True, True]"],
            "'grad' where 2 outputs are differentiable; write grads[0], grads[1]",
        ),
        (LIST, ["self: f(grad)"], "'grad' where the output is a list; write grads"),
        (ONE, ["self: f(self)"], "the gradient of 'self' reads no gradient"),
        (ONE, ["self: 0"], "the gradient of 'self' reads no gradient of an output; use grad"),
        (ONE, ["self: f(grad, grad_input_mask[1])"], "'grad_input_mask[1]' is out of bounds"),
        # forward mode
        (
            ONE,
            ["self: grad", "result: f(self_t, self)"],
            "'self', which is ambiguous; write self_p",
        ),
        (ONE, ["self: grad", "result: f(self_p)"], "reads no tangent; it is made of self_t"),
        (ONE, ["self: grad", "result: grad"], "unknown name 'grad'"),
        (ONE, ["self: f(self_p, grad)"], "unknown name 'self_p'; did you mean 'self'?"),
        (TWO, ["self: f(grads)", "a: f(self_t)"], "the output 'b' has no forward-mode formula"),
        (
            TWO,
            ["self: f(grad)", FIRST, "b: f(self_t)", "a: f(self_t)"],
            "'b', which is not differentiable",
        ),
        (TWO, ["self: f(grads)", "result: auto"], "'result' is neither an argument nor an output"),
        (TWO, ["self: f(grads, result)"], "'result' of 2 outputs; write a or b"),
        (
            "op(Tensor self, Tensor b) -> Tensor",
            ["self: grad", "b: non_differentiable", "result: f(self_t, b_t)"],
            "'b_t' is read, and 'b' is non_differentiable",
        ),
        (
            "op(Tensor self, Tensor b) -> Tensor",
            ["self: grad", "b: grad", "result: f(self_t)"],
            "no forward-mode formula reads 'b_t', and 'b' has a gradient",
        ),
        # words
        (ONE, ["self: auto_linear"], "'auto_linear' cannot stand for the formula of an input"),
        (ONE, ["self: grad", "result: zeros"], "'zeros' cannot stand for the formula of an output"),
        (ONE, ["self: f(not_implemented)"], "unknown name 'not_implemented'"),
        (ONE, ["self: not_implemented('a') + grad"], "not_implemented inside a formula"),
        (
            "op(Tensor self, Tensor b) -> Tensor",
            ["self, b: f(grad)", "result: auto_element_wise"],
            "auto_element_wise needs one differentiable input",
        ),
        (
            "op(Tensor[] self) -> Tensor",
            ["self: f(grad)", "result: auto_element_wise"],
            "auto_element_wise needs one differentiable input",
        ),
        (
            TWO,
            ["self: f(grads)", "a: auto_element_wise", "b: auto"],
            "auto_element_wise needs one differentiable input, no list, and one such output",
        ),
        (ONE, ["self: auto", "result: auto_element_wise"], "needs a formula for the gradient"),
        (INPLACE, ["self: grad", "result: auto_element_wise"], "for an in-place operator"),
        (TWO, ["self: f(grads)", "a: auto_linear", "b: auto"], "one of several differentiable"),
        (
            ONE,
            ["self: non_differentiable", "result: auto_linear"],
            "auto_linear without a differentiable input",
        ),
        # values that must not be read
        (INPLACE, ["self: grad * self"], "'self' is overwritten"),
        (INPLACE, ["self: grad", "result: self_t * self_p"], "'self_p' is overwritten"),
        ("op_(Tensor self)", ["self: grad * self"], "'self' is overwritten"),
        (TWO, ["self: f(grad, b)", FIRST], "'b' is read, an output without a derivative"),
        (
            TWO,
            ["self: f(grad, result1)", FIRST],
            "'result1' is read, an output without a derivative",
        ),
        (
            TWO,
            ["self: f(grad)", "a: self_t * b", FIRST],
            "'b' is read, an output without a derivative",
        ),
        (
            OLD,
            ["self: f(grad, result1)", FIRST],
            "'result1' is read, an output without a derivative",
        ),
        # output_differentiability
        (ONE, ["self: grad", "output_differentiability: [True, False]"], "length 2 for 1 outputs"),
        (TWO, ["self: f(grads)", "output_differentiability: [True]"], "length 1 for 2 outputs"),
        (ONE, ["self: grad", "output_differentiability: True"], "is no list"),
        (ONE, ["self: grad", "output_differentiability: [1]"], "'1' is neither True nor False"),
        (ONE, ["self: grad", "output_differentiability: [False]"], "none of its outputs is"),
        (INPLACE, ["output_differentiability: [False]"], "an in-place operator's output"),
        ("op(Tensor self) -> bool", ["self: grad"], "none of its outputs is differentiable"),
        # values
        (ONE, ["self: [grad]"], "a list where a formula belongs"),
        (ONE, ["self: {a: grad}"], "a map where a formula belongs"),
        (ONE, ["self:"], "it is empty"),
        (ONE, ["self: f(grad,", "  grad)"], "a formula of several lines"),
        (ONE, ["self: |", "    grad"], "a formula of several lines"),
        (ONE, ["self: lax.sin(grad)"], "lax. belongs in `forward:` only"),
    ],
)
def test_mistake(schema, lines, said):
    mistake = only(entry(*lines, schema=schema))
    assert mistake.entry in ("op", "op_")
    cause, _, cure = said.partition("; ")
    assert cause in mistake.cause
    assert cure in mistake.cure


@pytest.mark.parametrize(
    "name", ["indices", "index", "mask", "argmax_indices", "is_target", "count"]
)
def test_integral_outputs_are_fine_to_read(name):
    text = entry("self: f(grad, result1)", schema=f"op(Tensor self) -> (Tensor a, Tensor {name})")
    loads(text, functions=["f"]).check()


def test_metadata_of_what_is_overwritten_is_fine_to_read():
    loads(entry("self: f(grad, self.shape)", schema=INPLACE), functions=["f"]).check()


def test_value_functions():
    text = "- name: {}(Tensor self) -> Tensor\n  self: grad\n"
    assert "no function is called 'h'" in only(text.format("h")).cause
    assert "no function is called 'h'" in only(text.format("h.f")).cause
    for name in ("f", "f.Tensor"):
        loads(text.format(name), functions=["f"]).check()
    inplace = "- name: f_(Tensor(a!) self) -> Tensor(a!)\n  self: grad\n"
    loads(inplace, functions=["f"]).check()


def test_duplicates():
    same = mistakes(entry("self, other: f(grad)") * 2)
    assert [(m.line, m.cause) for m in same] == [
        (4, "a second entry for it; the first is in line 1")
    ]
    a = entry("self: grad", schema="op.a(Tensor self) -> Tensor")
    b = entry("self: grad", schema="op.b(Tensor self) -> Tensor")
    assert "its arguments are those of the entry in line 1" in only(a + b).cause
    old = entry("self: grad", schema="op(Tensor self)")
    assert "a second entry" in only(old + old.replace("(Tensor self)", "( Tensor  self)")).cause


def test_checks_go_on_after_a_broken_formula():
    text = entry("self: grad + grads[0]", "other: sef", "result: auto_element_wise")
    causes = [m.cause for m in mistakes(text)]
    assert len(causes) == 3
    assert "mix 'grad' and 'grads'" in causes[0]
    assert "unknown name 'sef'" in causes[1]
    assert "auto_element_wise needs one" in causes[2]


def test_lists_of_functions_hold_nothing_dangerous():
    names = {name for names in NAMESPACES.values() for name in names}
    takes_functions = {"map", "scan", "cond", "while_loop", "fori_loop", "switch", "reduce"}
    takes_functions |= {"reduce_window", "vectorize", "apply_along_axis", "piecewise", "sort_by"}
    does_io = {
        "save",
        "load",
        "savez",
        "fromfile",
        "from_dlpack",
        "frombuffer",
        "infeed",
        "outfeed",
    }
    assert not names & (takes_functions | does_io)


def test_lists_of_functions_exist():
    import jax

    modules = {"lax": jax.lax, "jnp": jax.numpy}
    for prefix, names in NAMESPACES.items():
        for name in names:
            target = modules[prefix]
            for part in name.split("."):
                target = getattr(target, part)
            assert callable(target)


def test_formula_class():
    assert isinstance(rule("sin").forward, Formula)


def test_a_check_stops_after_a_thousand_mistakes_and_says_where():
    # two mistakes an entry: an unknown name, and a gradient that does not use `grad`
    text = "".join(f"- name: f{i}(Tensor self) -> Tensor\n  self: wrong\n" for i in range(1500))
    with pytest.raises(TableError) as caught:
        loads(text, "t.yaml").check()
    lines = str(caught.value).splitlines()
    assert len(lines) == 1001 and sum("unknown name 'wrong'" in line for line in lines) == 500
    assert lines[1000] == (
        "t.yaml:1001:9: f500: the check stops here, after 1000 mistakes; "
        "correct the mistakes above first"
    )
