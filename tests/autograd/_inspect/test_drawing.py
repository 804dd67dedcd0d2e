"""Drawings of graphs: their content, valid XML, and readable layouts.

What is asked of a layout is geometry: no box lies on another, every edge leads down and touches no
box but its two, and text fits into its box.
"""

import functools
import itertools
import re
import weakref
from xml.etree import ElementTree

import hypothesis
import numpy
import pytest
from helpers.html_checks import Page
from helpers.work import at_most
from hypothesis import strategies

import jaxgrad as torch
from jaxgrad.autograd._inspect import graph_layout, svg
from jaxgrad.autograd._inspect.draw import _straight

graph = torch.autograd.graph
F = torch.nn.functional
SVG = "{http://www.w3.org/2000/svg}"


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def looked_at(drawing):
    """A drawing and its SVG parsed, after looking at its geometry."""
    placed = graph_layout.layout(
        [box.size for box in drawing.boxes], list(drawing.edges), drawing.straight
    )
    check_geometry(placed, list(drawing.edges))
    return drawing, ElementTree.fromstring(drawing.svg)


def texts(root):
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def boxes(root, kind):
    groups = root.iter(f"{SVG}g")
    return [
        list(map("".join, map(ElementTree.Element.itertext, group.findall(f"{SVG}text"))))
        for group in groups
        if group.get("class") == kind
    ]


# geometry


def overlap(first, second, margin=0.0):
    (x, y, width, height), (left, top, wide, high) = first, second
    apart_x = x + width + margin <= left or left + wide + margin <= x
    return not (apart_x or y + height + margin <= top or top + high + margin <= y)


def on_the_way(route):
    """Points of the curve that is drawn along a route."""
    points = []
    for number, ((x, y), (to_x, to_y)) in enumerate(itertools.pairwise(route)):
        for part in numpy.linspace(0, 1, 9):
            # a straight line, or Bezier's curve whose ends are upright
            bent = part if number % 2 == 0 else part * part * (3 - 2 * part)
            points.append((x + (to_x - x) * bent, y + (to_y - y) * part))
    return points


def check_geometry(placed, edges):
    for first, second in itertools.combinations(placed.boxes, 2):
        assert not overlap(first, second, margin=graph_layout.GAP - 0.01), (first, second)
    for x, y, width, height in placed.boxes:
        assert x >= 0 and y >= 0
        assert x + width <= placed.width and y + height <= placed.height
    for (source, target), route in zip(edges, placed.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        left, top, width, height = placed.boxes[source]
        assert route[0][1] == top + height and left <= route[0][0] <= left + width
        left, top, width, height = placed.boxes[target]
        assert route[-1][1] == top and left <= route[-1][0] <= left + width
        others = [box for i, box in enumerate(placed.boxes) if i not in (source, target)]
        for x, y in on_the_way(route):
            assert not any(overlap(box, (x, y, 0, 0)) for box in others)


@strategies.composite
def graphs(draw):
    count = draw(strategies.integers(1, 14))
    sizes = [
        (draw(strategies.floats(20, 160)), draw(strategies.floats(20, 70))) for _ in range(count)
    ]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    chosen = draw(strategies.lists(strategies.sampled_from(pairs), unique=True)) if pairs else []
    return sizes, sorted(chosen)


@pytest.mark.slow
@hypothesis.given(graphs())
def test_any_graph_is_laid_out(example):
    sizes, edges = example
    straight = _straight(edges, len(sizes))
    placed = graph_layout.layout(sizes, edges, straight)
    check_geometry(placed, edges)
    assert [box[2:] for box in placed.boxes] == sizes


@pytest.mark.slow
@hypothesis.given(
    strategies.lists(
        strategies.tuples(strategies.floats(-50, 50), strategies.floats(0.1, 9)), min_size=1
    ),
    strategies.data(),
)
def test_places_are_the_nearest_that_leave_room(pairs, data):
    wishes, weights = zip(*pairs, strict=True)
    distances = [data.draw(strategies.floats(1, 30)) for _ in wishes[1:]]
    positions = numpy.array(graph_layout.apart(wishes, weights, distances))
    assert (numpy.diff(positions) >= numpy.array(distances) - 1e-9).all()

    def cost(places):
        return (numpy.array(weights) * (places - numpy.array(wishes)) ** 2).sum()

    # the problem is convex: a layout that no shift of a part improves is optimal
    for start, end in itertools.combinations(range(len(wishes) + 1), 2):
        for step in (1e-4, -1e-4):
            moved = positions.copy()
            moved[start:end] += step
            if (numpy.diff(moved) >= numpy.array(distances) - 1e-12).all():
                assert cost(moved) >= cost(positions) - 1e-9


def test_an_edge_keeps_clear_of_a_taller_neighbour():
    sizes, edges = [(50.0, 20.0), (50.0, 200.0), (50.0, 20.0), (50.0, 20.0)], [(0, 3), (2, 3)]
    placed = graph_layout.layout(sizes, edges)
    check_geometry(placed, edges)
    left, middle, right = (placed.boxes[i][0] for i in (0, 1, 2))
    assert left < middle < right


def test_a_tree_has_no_crossings():
    edges = [(i, j) for i in range(7) for j in (2 * i + 1, 2 * i + 2)]
    placed = graph_layout.layout([(50.0, 20.0)] * 15, edges)
    ends = [(placed.boxes[i][0], placed.boxes[j][0], placed.boxes[i][1]) for i, j in edges]
    for (x, to, y), (left, end, top) in itertools.combinations(ends, 2):
        assert y != top or (x - left) * (to - end) >= 0


def test_crossings_are_counted_and_undone():
    # the first and the third box lead to the same one: they must stand side by side
    edges = [(0, 3), (1, 4), (2, 3), (2, 5)]
    layers = graph_layout._Layers([(10.0, 10.0)] * 6, [0] * 3 + [1] * 3, set())
    for source, target in edges:
        layers.chain(source, target)
    assert graph_layout._crossings(layers, layers.positions()) == 1
    graph_layout._reduce_crossings(layers)
    assert graph_layout._crossings(layers, layers.positions()) == 0


def test_a_chain_is_straight():
    y = leaf(3)
    for _ in range(10):
        y = (y * 2).sin()
    drawing, _ = looked_at(graph.draw(y))
    placed = graph_layout.layout(
        [box.size for box in drawing.boxes], list(drawing.edges), drawing.straight
    )
    middles = [x + width / 2 for x, _, width, _ in placed.boxes]
    assert max(middles) - min(middles) < 0.1


# what is in the boxes


def test_operators_and_leaves():
    w, b = leaf(2, 3), leaf(2)
    x = torch.ones(5, 3, dtype=torch.float32)
    with graph.record_lines():
        h = F.linear(x, w, b)
        loss = h.exp().sum()
    line = test_operators_and_leaves.__code__.co_firstlineno + 4
    drawing, root = looked_at(graph.draw(loss))
    assert repr(drawing) == "<drawing of 3 operators, 2 leaves, 100 B saved>"
    assert sorted(boxes(root, "leaf")) == [["b", "float32[2]"], ["w", "float32[2, 3]"]]
    name = f"test_drawing.py:{line}"
    assert boxes(root, "operator") == [
        ["SumBackward0", "loss: float32[]", f"test_drawing.py:{line + 1}"],
        ["ExpBackward0", "float32[5, 2]", f"40 B saved \u00b7 test_drawing.py:{line + 1}"],
        ["AddmmBackward0", "h: float32[5, 2]", f"60 B saved \u00b7 {name}"],
    ]
    assert len(list(root.iter(f"{SVG}rect"))) == 5
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "edge"]) == 4
    (told,) = [t.text for t in root.iter(f"{SVG}title") if t.text.startswith("AddmmBackward0")]
    assert f"{__file__}:{line}" in told and "input float32[5, 3], 60 B" in told


def test_text_fits_into_its_box():
    # widths of DejaVu Sans in units of 1/2048 em
    widths = {"M": 1767, "i": 569, "l": 569, "a": 1255, "W": 2025, "0": 1303, "[": 799, " ": 651}
    for character, units in widths.items():
        assert svg.Line(rest=character * 9).width >= 9 * 11 * units / 2048 * 0.98
    w = leaf(2)
    drawing, _ = looked_at(graph.draw((w * leaf(2)).sum(), names={"M" * 40: w}))
    for box in drawing.boxes:
        assert all(line.width <= box.size[0] for line in box.lines)


def test_names_of_parameters_are_drawn():
    w, other = leaf(2), leaf(3)
    y = w.sum() * other.sum()
    labels = boxes(looked_at(graph.draw(y))[1], "leaf")
    assert sorted(labels) == [["other", "float32[3]"], ["w", "float32[2]"]]
    labels = boxes(looked_at(graph.draw(y, names={"weight": w}))[1], "leaf")
    assert sorted(labels) == [["leaf", "float32[3]"], ["weight", "float32[2]"]]
    layers = {"first": {"w": w}, "rest": [other]}
    names = [first for first, _ in boxes(looked_at(graph.draw(y, names=layers))[1], "leaf")]
    assert sorted(names) == ["first.w", "rest[0]"]


def test_names_of_a_module():
    class Module:
        def __init__(self):
            self.w = leaf(2)

        def named_parameters(self):
            yield "layer.w", self.w

    model = Module()
    y = (model.w * 2).sum()
    assert boxes(looked_at(graph.draw(y, names=model))[1], "leaf") == [["layer.w", "float32[2]"]]
    assert boxes(looked_at(graph.draw(y))[1], "leaf") == [["model.layer.w", "float32[2]"]]


def test_names_are_escaped():
    w = leaf(2)
    name = """<script>"a" & 'b'</script>]]>\x00\x1b\n\\"""
    drawing, root = looked_at(graph.draw(w * 2, names={name: w}))
    shown = name.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\n", "\ufffd")
    assert boxes(root, "leaf")[0][0] == shown
    assert '<script>\\"a\\" & ' in drawing.dot


def test_a_leaf_that_is_used_twice_at_once():
    w = leaf(2)
    drawing, root = looked_at(graph.draw(w * w))
    assert drawing.edges == {(0, 1): 2}
    assert "2\u00d7" in texts(root)


def test_a_leaf_that_is_used_far_apart_has_several_boxes():
    w = leaf(2)
    y = w * 1
    for _ in range(8):
        y = y.sin()
    _, root = looked_at(graph.draw(y * w))
    assert [lines[-1] for lines in boxes(root, "leaf")] == ["float32[2]", "(again)"]


def test_what_was_cut_off_is_shown():
    w, v = leaf(2), leaf(2)
    with graph.record_lines():
        y = w.exp().detach() * v
    line = test_what_was_cut_off_is_shown.__code__.co_firstlineno + 3
    assert boxes(looked_at(graph.draw(y))[1], "cut") == [["detached", f"test_drawing.py:{line}"]]
    assert f"    not from: detached, test_drawing.py:{line}" in texts(
        looked_at(graph.draw(y, compact=True))[1]
    )


def test_what_is_freed():
    w = leaf(2)
    y = w.exp().sum()
    y.backward()
    assert boxes(looked_at(graph.draw(y))[1], "operator")[1] == [
        "ExpBackward0",
        "float32[2]",
        "freed",
    ]


# compact


def test_a_chain_in_one_box():
    w, b = leaf(2), leaf(2)
    y = ((w * 2).exp() + b).sum()
    drawing, root = looked_at(graph.draw(y, compact=True))
    assert not drawing.edges
    assert boxes(root, "operator") == [
        [
            "SumBackward0  y: float32[]",
            "AddBackward0 (b)  float32[2]",
            "ExpBackward0  float32[2] \u00b7 8 B saved",
            "MulBackward0 (w)  float32[2]",
        ]
    ]
    assert "AddBackward0 (b)  float32[2]\\l" in drawing.dot


def test_an_end_within_a_chain_has_a_box():
    w = leaf(2)
    y = w.exp()
    drawing, _ = looked_at(graph.draw([y.sin(), y], compact=True))
    assert [(box.is_end, box.lines[0].title) for box in drawing.boxes] == [
        (True, "SinBackward0"),
        (True, "ExpBackward0"),
    ]


def test_branches_have_boxes():
    w, b = leaf(2), leaf(2)
    y = w.exp()
    drawing, root = looked_at(graph.draw((y.sin() + y.cos() * b).sum(), compact=True))
    assert [len(lines) for lines in boxes(root, "operator")] == [2, 2, 1, 1]
    assert drawing.edges == {(0, 1): 1, (0, 2): 1, (1, 3): 1, (2, 3): 1}


def test_what_repeats_is_there_once():
    w = leaf(2)
    y = w
    for _ in range(50):
        y = (y * 2).sin()
    _, root = looked_at(graph.draw(y))
    (lines,) = boxes(root, "operator")
    assert lines == [
        "SinBackward0  y: float32[2] \u00b7 8 B saved",
        "MulBackward0  float32[2]",
        "SinBackward0  float32[2] \u00b7 8 B saved",
        "    (these 2, 49 times in a row)",
        "MulBackward0 (w)  float32[2]",
    ]
    assert "100 operators, 1 leaf, 400 B saved" in texts(root)


def test_many_branches_have_one_box():
    w = leaf(2)
    h = w.exp()
    drawing, root = looked_at(graph.draw(torch.stack([(h * i).sum() for i in range(70)]).sum()))
    assert drawing.edges == {(0, 1): 70, (1, 2): 70}
    branch = ["SumBackward0  float32[]", "MulBackward0  float32[2]"]
    lines = boxes(root, "operator")[1]
    assert [line for line in lines if not line.startswith("    (")][:5] == [*branch, "", *branch]
    assert any("times in a row" in line for line in lines)


def recurrent(steps):
    w, u, b = leaf(4, 4), leaf(4, 4), leaf(4)
    h = torch.zeros(2, 4)
    for _ in range(steps):
        h = torch.tanh(torch.ones(2, 4) @ w + h @ u + b)
    return h.sum(), {"w": w, "u": u, "b": b}


def residual(blocks):
    names, x = {}, leaf(6, 8)
    t = x
    for i in range(blocks):
        q, k, v, o = (names.setdefault(f"{i}.{n}", leaf(8, 8)) for n in "qkvo")
        attention = torch.softmax((t @ q) @ (t @ k).t() / 3, -1) @ (t @ v)
        t = t + F.relu(attention @ o)
    return t.sum(), names | {"x": x}


def wide(branches):
    x = leaf(3)
    outputs = [x.sin().exp().sum() * i for i in range(branches)]
    return torch.stack(outputs).sum(), {"x": x}


def fan(branches):
    x = leaf(3)
    h = x.exp()
    outputs = [(h * i).sum() for i in range(branches)]
    return torch.stack(outputs).sum(), {"x": x}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "count", "width", "height"),
    [
        (functools.partial(recurrent, 60), 301, 1000, 7000),
        (functools.partial(residual, 27), 298, 1800, 12000),
        (functools.partial(wide, 75), 302, 500, 5000),
        (functools.partial(fan, 150), 304, 600, 5000),
    ],
)
def test_300_operators_can_be_read(make, count, width, height):
    y, names = make()
    drawing, root = looked_at(graph.draw(y, names=names))
    assert f"{count - 2} operators" <= drawing.summary <= f"{count + 3} operators"
    assert float(root.get("width")) <= width and float(root.get("height")) <= height
    shown = " ".join(texts(root))
    assert all(re.search(rf"\b{re.escape(name)}\b", shown) for name in names)


# kinds of graphs


def test_a_function_and_its_several_outputs():
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x[:2].clone(), x[2:].clone(), 3

        @staticmethod
        def backward(ctx, first, second, _):
            return torch.cat([first, second])

    x = leaf(4)
    first, second, _ = Halves.apply(x)
    _, root = looked_at(graph.draw([first, second]))
    assert boxes(root, "function") == [
        ["HalvesBackward", "first: float32[2]", "second: float32[2]", "16 B saved"]
    ]


def test_nodes_with_many_outputs_are_drawn():
    pieces = leaf(6).unbind()
    labels = boxes(looked_at(graph.draw(pieces[0] + pieces[5], names={}))[1], "operator")
    assert labels[-1] == ["UnbindBackward0", *["float32[]"] * 3, "and 3 more"]


def test_writes_and_views():
    w = leaf(2)
    base = torch.zeros(3)
    base[1:].mul_(w)
    names = [lines[0] for lines in boxes(looked_at(graph.draw(base))[1], "operator")]
    assert names == ["CopySlices", "MulBackward0"]


def test_a_graph_of_a_gradient():
    w = leaf(2)
    (first,) = torch.autograd.grad((w.exp() * w).sum(), w, create_graph=True)
    names = {lines[0] for lines in boxes(looked_at(graph.draw(first))[1], "operator")}
    assert {"MulBackwardBackward0", "ExpBackwardBackward0", "ExpBackward0"} <= names


def test_a_leaf_an_edge_a_node_and_several_tensors():
    w = leaf(2)
    assert repr(graph.draw(w)) == "<drawing of 0 operators, 1 leaf, 0 B saved>"
    assert repr(graph.draw(w, compact=True)) == repr(graph.draw(w))
    y, z = w.exp(), w.sin()
    assert graph.draw(graph.get_gradient_edge(y)).summary == graph.draw(y).summary
    assert graph.draw(y.grad_fn).summary == graph.draw(y).summary
    assert graph.draw([y, z]).summary == "2 operators, 1 leaf, 16 B saved"


def test_while_it_is_compiled():
    drawings = []

    def step(w):
        drawings.append(graph.draw((w.exp() * w).sum()))
        return w

    torch.jit(step)(leaf(5))
    assert drawings[0].summary == "3 operators, 1 leaf, 40 B saved"
    assert "w" in texts(ElementTree.fromstring(drawings[0].svg))


def test_what_has_no_graph():
    with pytest.raises(RuntimeError, match=r"does not require grad.*explain"):
        graph.draw(torch.ones(2))
    for wrong in (3, None, [], (), "w"):
        with pytest.raises(TypeError, match="graph is that of a tensor"):
            graph.draw(wrong)


def test_a_drawing_holds_no_graph():
    w = leaf(2)
    y = w.exp()
    drawing, node = graph.draw(y), weakref.ref(y.grad_fn)
    del y
    assert node() is None and "ExpBackward0" in drawing.svg


# as text


def test_dot_source_of_a_graph():
    w = leaf(2)
    drawing = graph.draw((w * w).sum())
    lines = drawing.dot.splitlines()
    assert (lines[0], lines[-1]) == ("digraph gradients {", "}")
    statement = re.compile(r'  (node|n\d+( -> n\d+)?)( \[(\w+=("([^"\\]|\\.)*"|\w+)(, )?)+\])?;')
    assert all(statement.fullmatch(line) for line in lines[1:-1])
    assert '  n0 [label="SumBackward0\\nfloat32[]", fillcolor="#e3e9f5"];' in lines
    assert "  n0 -> n1;" in lines and '  n1 -> n2 [label="2\u00d7"];' in lines


def test_it_is_saved_and_shown(tmp_path):
    drawing = graph.draw(leaf(2) * 2)
    for ending, text in ((".svg", drawing.svg), (".dot", drawing.dot), (".gv", drawing.dot)):
        drawing.save(tmp_path / f"graph{ending}")
        assert (tmp_path / f"graph{ending}").read_text(encoding="utf-8") == text
    drawing.save(str(tmp_path / "again.svg"))
    assert drawing._repr_svg_() == drawing.svg
    with pytest.raises(ValueError, match=r"\.svg, \.dot or \.gv, not as 'graph\.png'"):
        drawing.save(tmp_path / "graph.png")


def test_long_lists_of_the_caller_are_not_looked_through():
    data = [[[0.0] * 100] * 1000] * 1000
    w = leaf(2)
    with at_most(300_000):  # `data` has a million lists
        drawing = graph.draw(w * 2)
    assert drawing.boxes[1].lines[0].title == "w" and len(data) == 1000


def test_a_notebook_shows_the_graph_of_a_node():
    w = leaf(2)
    y = (w * w).sum()
    html = y.grad_fn._repr_html_()
    assert Page(html).tags[0] == "svg" and "MulBackward0" in html
    y.backward()
    assert "freed" in y.grad_fn._repr_html_()
    for _ in range(210):
        w = w * 2
    assert w.grad_fn._repr_html_() is None
