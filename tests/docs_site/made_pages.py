"""How docstrings and scripts become pages; `make docs-check` runs these tests."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import ops

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "site"))

import formulas
import hooks
import plots
import tutorials
import values
from differences import differences
from docstrings import Docstring, example
from reference import addresses, body, namespaces, shown_signature, with_examples

PROSE = """Scale `x`
    by a factor.

    x: of any shape. factor, bias: numbers; see `torch.func.grad`. Raises ValueError for 0 < x.
    Later calls are faster.

        x = *not emphasis*

    >>> 1 + 1
    2
    """


def test_a_docstring_of_prose():
    prose = Docstring(PROSE, ["x", "factor", "bias"], {"torch.func.grad": "grad.html"}.get)
    assert prose.summary == "Scale <code>x</code> by a factor."
    assert "<dt><code>x</code></dt><dd>of any shape.</dd>" in prose.html()
    assert "<dt><code>factor</code>, <code>bias</code></dt><dd>numbers; see <a href" in prose.html()
    assert "<dt>Raises</dt><dd>ValueError for 0 &lt; x.</dd></dl><p>Later calls" in prose.html()
    assert "<pre><code>x = *not emphasis*</code></pre>" in prose.html()
    assert 'data-copy="1 + 1"' in prose.html() and "2</span></code></pre>" in prose.html()


def test_arguments_in_one_sentence_have_rows_of_their_own():
    text = "S.\n\nx: a tensor; y: another; see: no argument. The other arguments are those of f."
    shown = Docstring(text, ["x", "y"]).html()
    assert "<dt><code>x</code></dt><dd>a tensor.</dd>" in shown
    assert "<dd>another; see: no argument.</dd></dl><p>The other arguments are" in shown
    entry = body("torch.autograd").partition('id="torch.autograd.backward"')[2]
    assert "<dt><code>grad_tensors</code></dt>" in entry.partition("<h3 ")[0]


def test_examples_have_the_name_that_users_give_jaxgrad():
    shown = example(">>> import jaxgrad.nn as nn\n>>> jaxgrad.ones(1)  # doctest: +SKIP\njaxgrad.x")
    plain = re.sub("<[^>]+>", "", shown)
    assert plain == "&gt;&gt;&gt; import jaxgrad.nn as nn\n&gt;&gt;&gt; torch.ones(1)\njaxgrad.x"
    assert 'data-copy="import jaxgrad.nn as nn\ntorch.ones(1)"' in shown


def test_a_module_has_its_modules_and_what_its_docstring_says():
    page = body("torch.backends")
    assert (
        '<a href="torch.backends.cuda.html">' in page and "torch.backends.mps.is_available" in page
    )
    assert "as torch.backends" not in page
    assert "have a mask.</p>" in body("torch.masked")  # the name is on a line of its own
    assert "_kl_formulas" not in body("torch.distributions.kl")
    assert "<dd>Linear algebra. <span" in body("index")


def test_modules_without_stubs_have_pages():
    for name in ("torch.jit.trace", "torch.fx.symbolic_trace", "torch.ao.quantization.convert"):
        space = name.rpartition(".")[0]
        assert f'id="{name}"' in body(space) and "&gt;&gt;&gt;" in body(space), name
    graph = body("torch.fx").partition('id="torch.fx.Graph.placeholder"')[2][:600]
    assert "default_value: Any = Parameter.empty" in graph
    assert '<a href="torch.fx.experimental.optimization.html">' in body("torch.fx")


def test_a_layer_does_not_repeat_forward():
    assert 'id="torch.nn.ReLU.forward"' not in body("torch.nn")


def test_a_class_has_the_members_of_the_parts_that_it_alone_is_made_of():
    modules, functions = body("torch.nn"), body("torch.autograd")
    for name in ("parameters", "state_dict", "register_forward_hook", "to", "zero_grad"):
        assert f'id="torch.nn.Module.{name}"' in modules, name
    for name in ("forward", "setup_context", "backward", "jvp", "vmap"):
        assert f'id="torch.autograd.Function.{name}"' in functions, name


def test_a_layer_has_no_entry_of_the_function_that_it_calls():
    assert 'id="torch.nn.ReLU.function"' not in body("torch.nn")


def test_an_operator_has_its_overloads_formulas_and_other_names():
    entry = body("torch").partition('id="torch.sum"')[2].partition("<h3 ")[0]
    for part in (
        "<code>sum(input: Tensor, *, dtype",
        "<code>sum_backward(grad, self.shape, dim, keepdim)</code>",
        "tensor([4., 6.])",
        '<a href="torch.Tensor.html#torch.Tensor.sum">',
        "../api/operators/reduction.html#sum",
    ):
        assert part in entry


def test_other_names_lead_to_the_entry():
    for name in ("torch.Tensor.sum", "torch.Tensor.add_", "torch.absolute", "torch.special.expit"):
        page = addresses()[name].partition(".html")[0]
        entry = body(page).partition(f'id="{name}"')[2].partition("<h3 ")[0]
        assert " See <a href=" in entry and len(entry) < 600


def test_what_differs_from_pytorch_stands_at_the_name():
    assert any("(PyTorch: 0)" in row for row in differences()["ldexp"])
    assert "expand" not in differences()  # `Multinomial.entropy` after `expand`
    assert "Differs from PyTorch" in body("torch").partition('id="torch.ldexp"')[2][:4000]


def test_a_signature_shows_types_by_their_names():
    def function(self, x: "Tensor | None", key=len, size=(1, 2)): ...  # noqa: F821

    assert shown_signature(function, True) == "(x: Tensor | None, key=len, size=(1, 2))"
    zeros = shown_signature(torch.zeros, False)
    assert zeros.startswith("(*size, dtype: dtype | None = None, device: device | str | int | None")
    assert "memory_format" in shown_signature(torch.empty, False) and "memory_format" not in zeros
    pool = shown_signature(torch.nn.functional.avg_pool1d, False)
    assert "kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None" in pool


def test_an_enumeration_has_its_members():
    entry = body("torch.autograd").partition('id="torch.autograd.ProfilerActivity"')[2]
    assert (
        "<code>ProfilerActivity.CPU</code>" in entry
        and "qualname" not in entry.partition("<h3 ")[0]
    )


def test_defaults_and_origins_are_what_users_write():
    assert "op=ReduceOp.SUM, group" in shown_signature(torch.distributed.all_reduce, False)
    assert "multiprocessing.Pipe</code>" in body("torch.multiprocessing")
    constraints = body("torch.distributions.constraints")
    assert "Square matrices." in constraints and "An object of type" not in constraints
    assert "Node.edge_at" not in body("torch.autograd.graph")
    assert "<p>The same as <code>torch." not in body("torch.distributed")


def test_no_signature_has_names_of_the_sources():
    names = re.compile(r"Unpack\[|ForwardRef|\b(Extents|Ratios|DeviceLike|dtypes\.|devices\.)")
    for space in namespaces():
        for signature in re.findall('<div class="signature">(.*?)</div></div>', body(space)):
            assert not names.search(re.sub("<[^>]+>", "", signature)), (space, signature)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tutorials, "DOCS", tmp_path)
    monkeypatch.setattr(tutorials, "NOTEBOOKS", tmp_path / "made")
    (tmp_path / "tutorials").mkdir()
    return tmp_path / "tutorials"


SCRIPT = """# %% [markdown]
# # Two cells

# %%
print("<b>")
1 + 1

# %%
from IPython.display import HTML
HTML("<table></table>")
"""


def test_a_script_becomes_a_page(folder):
    (folder / "two.py").write_text(SCRIPT)
    (folder / "times.tsv").write_text(
        "tutorial\twhat\tseconds\tmachine\tversions\tdate\n"
        "two\tjaxgrad\t1.3\ta machine\tjax 1\t2026-01-01\n"
        "two\ttorch compiled\tdoes not run: KeyError\ta machine\ttorch 2\t2026-01-01\n"
    )
    page = tutorials.pages()["tutorials/two.md"]
    assert page.startswith('# Two cells\n\n```python\nprint("<b>")\n1 + 1\n```')
    assert "```output\n<b>\n```\n\n```output\n2\n```" in page
    assert '<div class="display">\n<table></table>\n</div>' in page
    assert "| jaxgrad | 1.3 |\n    | torch compiled | does not run: KeyError |\n" in page
    assert "on a machine with jax 1, torch 2 on 2026-01-01" in page
    assert page.endswith("[The script of this page](two.py)")


def test_a_script_that_raises_stops_the_build(folder):
    (folder / "bad.py").write_text("# %%\n1 / 0\n")
    with pytest.raises(Exception, match="ZeroDivisionError") as error:
        tutorials.pages()
    assert "bad.py" in error.value.__notes__[0]


def test_formulas_become_mathml():
    page = type("", (), {"file": type("", (), {"src_uri": "a.md"})})
    html = hooks.on_page_content('<span class="arithmatex">\\(x &lt; 2\\)</span>', page, None, None)
    assert html.startswith("<math") and "<mi>x</mi>" in html and "arithmatex" not in html


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / (1 + exp(-input))", r"\frac{1}{1 + e^{-\text{input}}}"),
        (
            "-0.5 * grad * (result ** 3).conj()",
            r"-0.5 \, \text{grad} \, \overline{{\text{result}}^{3}}",
        ),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("a * -b", r"a \, \left(-b\right)"),
        ("where(x > 0, x, 0)", r"\begin{cases} x & x > 0 \\ 0 & \text{else} \end{cases}"),
        ("0.6931471805599453 * grad", r"\ln 2 \, \text{grad}"),
        ("sum_backward(grad, self.shape)", None),
        ("not an expression", None),
    ],
)
def test_expressions_become_tex(expression, expected):
    assert formulas.tex(expression) == expected


def test_every_formula_of_the_table_that_has_tex_has_mathml():
    table = ops.library.table
    rules = [rule for name in table.entries for rule in table.rules(name)]
    texts = [getattr(formula, "text", "") for rule in rules for _, formula in rule.gradients]
    in_tex = list(filter(None, map(formulas.tex, filter(None, texts))))
    assert len(in_tex) > 100 and all("<math" in formulas.mathml(text) for text in in_tex)


def test_the_formula_of_an_operator_is_its_value():
    assert values.is_value(torch.add, "input + alpha * other")
    assert values.is_value(torch.relu, "max(input, 0)")
    assert values.is_value(torch.nn.functional.gelu, "input * Phi(input)")
    for function, expression in (
        (torch.add, "input + other"),
        (torch.relu, "input"),
        (torch.special.entr, "-input * log(input)"),  # of positive numbers alone
        (torch.log1p, "1 + input"),
        (torch.pow, "0 ** 0"),
        (torch.sinc, "sin(pi * input) / (pi * input)"),  # 1 at 0
        (torch.fmod, "-grad * trunc(input / other)"),
    ):
        assert not values.is_value(function, expression), expression
    entry = body("torch").partition('id="torch.remainder"')[2].partition("<h3 ")[0]
    assert "Remainder" in entry and 'class="tex"><math' not in entry.partition("<dl")[0]


def test_names_and_accents_of_formulas_stand_as_in_print():
    wide, narrow = 'lspace="0.17em"', 'rspace="0em"'
    assert f'<mo {wide} rspace="0.17em">log</mo><mn>2</mn>' in formulas.mathml(r"3 \log 2")
    assert f"{narrow}>sin</mo><mrow>" in formulas.mathml(r"\sin\left(x\right)")
    assert '<mover accent="true"><mi>' in formulas.mathml(r"\dot\theta")
    assert '<mo stretchy="true" fence="true">&#x00028;</mo><mfrac' in formulas.mathml(
        r"\binom{n}{k}"
    )


def test_a_function_of_one_number_has_a_plot():
    x = np.linspace(plots.LOW, plots.HIGH, plots.COUNT)
    curves = plots.curves(torch.sin)
    np.testing.assert_allclose(curves["value"], np.sin(x), atol=1e-12)
    np.testing.assert_allclose(curves["slope"], np.cos(x), atol=1e-12)
    assert ">-2</text>" in plots.plot(torch.sin) and ">0.5</text>" in plots.plot(torch.sin)
    assert plots.upright_marks(-1.0, 1.0) == [-1.0, -0.5, 0.5, 1.0]
    assert plots.upright_marks(-0.5, 16.0) == [5, 10, 15]
    assert plots.plot(torch.log).count("<polyline") == 4  # two curves and the two of the legend
    assert plots.plot(torch.tan).count('<polyline class="value"') > 3  # it ends at each pole
    assert plots.plot(torch.add) == plots.plot(torch.clone) == plots.plot(torch.nn.Linear) == ""
    entry = body("torch").partition('id="torch.sigmoid"')[2].partition("<h3 ")[0]
    assert "<mfrac>" in entry and '<svg class="plot"' in entry


def test_long_names_break_between_their_words():
    shown = hooks.on_post_page("<td><code>a_long.name_</code></td>", None, None)
    assert shown == "<td><code>a_<wbr>long.<wbr>name_</code></td>"
    heading = '<h3 class="name" id="a.LongName_of"><span class="space">a.</span>LongName_of'
    assert hooks.on_post_page(heading, None, None).endswith("</span>Long<wbr>Name_<wbr>of")
    card = '<h2 id="a_long"></h2><h2 id="a_long">ops.a_long<a class="headerlink" href="#">'
    assert "ops.<wbr>a_<wbr>long<a" in hooks.on_post_page(card, None, None)
    title = '<h1 id="torchlong">torch.long.name<a class="headerlink" href="#">'
    assert "torch.<wbr>long.<wbr>name<a" in hooks.on_post_page(title, None, None)
    node = hooks.on_post_page("<code>AttentionWithDropoutBackward0</code>", None, None)
    assert node == "<code>Attention<wbr>With<wbr>Dropout<wbr>Backward0</code>"
    block = "<pre><span></span><code>a_long.name\n</code></pre>"
    assert hooks.on_post_page(block, None, None) == block


def test_output_of_words_wraps_and_columns_stay():
    def shown(text):
        block = f'<div class="language-output highlight"><pre><code>{text}</code></pre></div>'
        return "words" in hooks.OUTPUT.sub(hooks.marked_if_words, block)

    assert shown("index 7 is out of bounds") and shown("tensor([1., 2.])")
    assert not shown("name     seconds\nsum     0.1") and not shown("tensor([[1.],\n        [2.]])")


def test_a_card_has_the_example_of_its_entry():
    card = '<h2 id="gelu">gelu</h2>\n<p>A function.</p>'
    shown = with_examples(card)
    assert shown.startswith(card) and "&gt;&gt;&gt;" in shown and "<polyline" in shown
    assert '"../../reference/torch.nn.functional.html#torch.nn.functional.gelu"' in shown
    limited = with_examples('<h2 id="hardtanh">hardtanh</h2>\n<p>H.</p>')
    assert "torch.nn.functional.html#torch.nn.functional.hardtanh" in limited
    unknown = '<h2 id="no_operator">no_operator</h2>\n<p>None.</p>'
    assert with_examples(unknown) == unknown


def test_cards_of_functions_that_users_call_come_first():
    page = "# Page\n\n## a_backward\n\nA.\n\n## ops._b\n\nB.\n\n## c\n\nC.\n\n"
    first, parts, last = hooks.public_first(page).partition(hooks.PARTS)
    assert (first, parts) == ("# Page\n\n## c\n\nC.\n\n", hooks.PARTS)
    assert last == "## a_backward\n\nA.\n\n## ops._b\n\nB.\n\n"
    assert hooks.public_first("# Page\n\n## c\n\nC.\n") == "# Page\n\n## c\n\nC.\n"
    assert "\npython -m jaxgrad ops _b  #" in hooks.public_first("# Page\n\n## ops._b\n\nB.\n")


def test_rows_of_autograd_have_a_count_of_tests_in_place_of_names():
    rows = """\
| row | what | tests | remark |
| --- | --- | --- | --- |
| A01 | `a`: b | [test_a](../../tests/a.py)<br>[test_b](../../tests/a.py) | Differs. |
| A02 | c |  |  |
"""
    assert (
        hooks.with_counts_of_tests(rows)
        == """\
| what | tests | remark |
| --- | --- | --- |
| `a`: b | 2 | Differs. |
| c | none |  |
"""
    )


def test_a_page_of_names_that_are_elsewhere_has_an_example():
    assert 'class="highlight"' in body("torch.autograd.grad_mode")


def test_types_and_containers_are_shown_by_what_they_hold():
    assert "The type int | float | bool." in body("torch.types")
    assert "The tuple (SymInt, SymFloat, SymBool)." in body("torch.types")
    assert "PEP 604" not in body("torch.types") + body("torch.optim.optimizer")


def test_helpers_of_sources_have_no_entry():
    paths = {entry.path for entries in namespaces().values() for entry in entries}
    assert "torch.nn.parameter.Parameter" in paths
    assert "torch.nn.parameter.new_parameter" not in paths
