"""Bytes that a graph keeps for its backward pass: counted by hand, and by JAX."""

import gc
from html.parser import HTMLParser

import jax
import numpy
import pytest
from helpers.modes import eager

import jaxgrad as torch

graph = torch.autograd.graph
F = torch.nn.functional


@pytest.fixture(autouse=True)
def by_xla():
    """JAX knows which of its arrays are alive."""
    with eager("compiled"):
        yield


def leaf(*shape, **options):
    return torch.ones(*shape, requires_grad=True, **options)


def rows(report):
    return [(row.name, row.bytes, row.shared) for row in report.rows]


def alive():
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


def test_bytes_by_operator_and_line():
    x = leaf(10)
    with graph.record_lines():
        y = x.exp()
        z = (y * y.sin()).sum()
    line = test_bytes_by_operator_and_line.__code__.co_firstlineno + 3
    report = graph.memory_report(z)
    assert rows(report) == [
        ("ExpBackward0", 40, 0),  # its result
        ("SinBackward0", 0, 40),  # its argument, the same array
        ("MulBackward0", 40, 40),  # the argument and the sine
        ("SumBackward0", 0, 0),
    ]
    assert report.total == 80 and report.of_leaves == 0
    assert report.lines == {f"{__file__}:{line}": 40, f"{__file__}:{line + 1}": 40}
    assert report.rows[2].saved == ("self float32[10]", "other float32[10]")


def test_it_is_what_dies_with_the_graph():
    x = leaf(1000)
    y = (x.exp().sin() * 2).exp().sum()
    report = graph.memory_report(y)
    before = alive()
    y.backward()
    x.grad = None
    assert report.total == 8000 == before - alive()


def test_values_of_leaves():
    x, w = torch.ones(5, 3), leaf(2, 3)
    report = graph.memory_report(F.linear(x.requires_grad_(), w))
    assert (report.total, report.of_leaves) == (60 + 24, 60 + 24)
    report = graph.memory_report(F.linear(x.detach(), w))
    assert (report.total, report.of_leaves) == (60, 0)


def test_one_buffer_under_two_tensors():
    x = leaf(10)
    y = x.exp()
    assert graph.memory_report(y * y.detach()).total == 40
    assert graph.memory_report(y * y.clone()).total == 80


def test_bytes_of_each_dtype():
    for dtype, size in ((torch.float16, 2), (torch.float64, 8), (torch.complex128, 16)):
        assert graph.memory_report(leaf(3, dtype=dtype).exp()).total == 3 * size
    index = torch.tensor([0, 1])
    assert graph.memory_report(leaf(3)[index]).total == index.numel() * 8


def test_bytes_of_a_partly_freed_graph():
    x = leaf(10)
    y = x.exp()
    first, second = y.sin().sum(), y.cos().sum()
    report = graph.memory_report([first, second])
    assert report.total == 40
    torch.autograd.grad(first, y)
    assert rows(graph.memory_report([first, second])) == [
        ("ExpBackward0", 40, 0),
        ("SinBackward0", 0, 0),
        ("SumBackward0", 0, 0),
        ("CosBackward0", 0, 40),
        ("SumBackward0", 0, 0),
    ]
    first.detach_()
    second.backward()
    report = graph.memory_report(second)
    assert report.total == 0 and "ExpBackward0" not in str(report)


def test_bytes_that_functions_save():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            ctx.square = x * x
            ctx.power = 3
            return ctx.square * x

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_tensors) == 2
            return grad * 3 * ctx.square

    x = leaf(10)
    y = Cube.apply(x)
    report = graph.memory_report(y)
    assert rows(report) == [("CubeBackward", 80, 0)]
    assert report.rows[0].saved == ("saved 0 float32[10]", "square float32[10]")
    assert report.of_leaves == 40
    y.sum().backward()
    assert rows(graph.memory_report(y)) == [("CubeBackward", 40, 0)]  # the attribute stays


def test_an_output_that_a_function_saves():
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    y = Exp.apply(leaf(10))
    assert rows(graph.memory_report(y.sin())) == [("ExpBackward", 40, 0), ("SinBackward0", 0, 40)]


def test_what_hooks_made_of_it():
    x = leaf(10)
    with graph.saved_tensors_hooks(lambda t: t.numpy().astype(numpy.float16), torch.tensor):
        y = x.exp()
    report = graph.memory_report(y)
    assert report.total == 20 and report.devices == {"host": 20}
    with graph.saved_tensors_hooks(lambda t: "in a file", lambda path: torch.ones(10)):
        y = x.exp()
    assert graph.memory_report(y).total == 0
    with graph.save_on_cpu():
        y = x.exp()
    assert graph.memory_report(y).total == 40


def test_a_gradient_that_is_differentiated():
    x = leaf(10)
    y = x.exp()
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    report = graph.memory_report(first)
    names = [row.name for row in report.rows]
    assert names == ["ExpBackward0", "ExpBackwardBackward0"]
    assert report.rows[1].shared == 40 and report.total == 80


def test_what_a_function_keeps_to_run_again():
    class Quartic(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            return square * square

        @staticmethod
        def backward(ctx, grad):
            (square,) = ctx.saved_tensors
            return grad * 4 * square

    report = graph.memory_report(Quartic.apply(leaf(10)))
    assert rows(report) == [("QuarticBackward", 80, 0)]  # the square, and the argument
    assert report.of_leaves == 40


def test_one_buffer_in_two_arrays():
    with graph.saved_tensors_hooks(
        lambda t: jax.device_put(t._array, jax.devices()[0]), torch.tensor
    ):
        y = leaf(10).exp()
        z = y.sin() + y.cos()
    first, second, _ = graph.memory_report(z).rows[-3:]
    assert (first.bytes, first.shared, second.bytes, second.shared) == (0, 40, 0, 40)


def test_writes_keep_nothing():
    x, base = leaf(10), torch.zeros(20)
    base[10:].copy_(x)
    base[:10].add_(x)
    assert graph.memory_report(base).total == 0


def test_strict_versions_do_not_mind():
    with graph.strict_versions():
        y = leaf(10).exp()
        y.add_(1)
        assert graph.memory_report(y).total == 40


def test_bytes_of_tangents():
    forward_ad = torch.autograd.forward_ad
    x = leaf(10)
    with forward_ad.dual_level():
        moving = forward_ad.make_dual(x, torch.ones(10))
        report = graph.memory_report(moving.exp())
    assert report.rows[-1].saved == ("result float32[10]", "tangent float32[10]")
    assert report.total == 80


def test_while_it_is_compiled():
    reports = []

    def step(x):
        reports.append(graph.memory_report((x.exp() * x).sum()))
        return x

    torch.jit(step)(leaf(10))
    assert reports[0].total == 80 and reports[0].xla == {} and reports[0].devices == {}


def test_what_jax_says():
    x = leaf(1000)
    y = x.exp()
    gc.collect()
    report = graph.memory_report(y)
    assert report.xla["live arrays"] == alive() >= report.total == 4000
    statistics = jax.local_devices()[0].memory_stats()
    assert ("in use on" in str(report.xla)) == (statistics is not None)


def test_what_devices_that_count_say(monkeypatch):
    class Device:
        def __str__(self):
            return "gpu:0"

        def memory_stats(self):
            return {"bytes_in_use": 12_000, "peak_bytes_in_use": 34_000, "num_allocs": 5}

    x = leaf(1000)
    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    report = graph.memory_report(x.exp())
    assert report.xla["in use on gpu:0"] == 12_000 and report.xla["peak on gpu:0"] == 34_000
    assert "XLA: peak on gpu:0           34,000 bytes (34 kB)" in str(report)


def test_a_deleted_array_has_no_bytes():
    x = leaf(10)
    y = x.exp()
    y._array.delete()
    assert graph.memory_report(y).total == 0


def test_the_printed_report():
    x = leaf(10, 100)
    with graph.record_lines():
        y = (x.exp() * x).sum()
    line = test_the_printed_report.__code__.co_firstlineno + 3
    report = graph.memory_report(y)
    report.xla["live arrays"] = 12_000_000
    assert str(report).splitlines() == [
        "operator      line                       bytes  shared  saved",
        f"ExpBackward0  test_memory_report.py:{line}  4,000       0  result float32[10, 100]",
        f"MulBackward0  test_memory_report.py:{line}  4,000   4,000  self float32[10, 100], "
        "other float32[10, 100]",
        "",
        "line                       bytes",
        f"test_memory_report.py:{line}  8,000",
        "",
        "saved for the backward pass  8,000 bytes (8 kB)",
        "of these, values of leaves   4,000 bytes (4 kB)",
        "XLA: live arrays             12,000,000 bytes (12 MB)",
    ]
    assert repr(report) == "<memory report: 8,000 bytes (8 kB) saved by 3 operators>"


def test_a_long_table_is_cut_short():
    y = leaf(2)
    for _ in range(100):
        y = y.sin()
    report = graph.memory_report(y)
    assert len(report.rows) == 100 and "and 60 more" in str(report)
    assert len(str(report).splitlines()) < 60


def test_shown_in_a_notebook():
    class Cells(HTMLParser):
        def __init__(self):
            super().__init__()
            self.opened, self.cells = [], []

        def handle_starttag(self, tag, attributes):
            self.opened.append(tag)

        def handle_endtag(self, tag):
            assert self.opened.pop() == tag

        def handle_data(self, data):
            self.cells.append(data)

    parser = Cells()
    parser.feed(graph.memory_report(leaf(1000).exp())._repr_html_())
    assert not parser.opened and {"ExpBackward0", "4,000"} <= set(parser.cells)


def test_what_has_no_graph():
    with pytest.raises(RuntimeError, match="does not require grad"):
        graph.memory_report(torch.ones(2))
    with pytest.raises(TypeError, match="graph is that of a tensor"):
        graph.memory_report(3)
    assert graph.memory_report(leaf(2)).rows == []
