"""Tensors as HTML. Figures are numpy's; pictures are decoded by numpy and zlib."""

import base64
import re
import struct
import warnings
import zlib

import numpy as np
import pytest
from helpers.html_checks import Page

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.frontend.printing import html as tensor_html


def picture_of(html):
    """The numbers of the colors of the picture in HTML, and the colors."""
    data = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length :][:4])[0]
        chunks[kind], at = body, at + 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:], np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(1000),
        torch.tensor(3.0),
        torch.ones(0, 3),
        torch.empty(5000, device="meta"),
        nn.LazyLinear(3).weight,
        torch.eye(100).to_sparse(),
    ],
    ids=["small", "number", "empty", "meta", "lazy", "sparse"],
)
def test_text_is_enough(tensor):
    assert tensor._repr_html_() is None


def test_figures():
    values = np.random.default_rng(0).normal(size=5000).astype("float32")
    values[:5], values[5:15] = 0, np.nan
    values[20] = np.inf
    page = Page(torch.tensor(values, requires_grad=True)._repr_html_())
    finite = values[np.isfinite(values)]
    figures = f"min {finite.min():.4g} · mean {finite.mean():.4g} · max {finite.max():.4g}"
    assert figures in page.text and "10 NaN · 1 infinite · 0.1% zeros" in page.text
    assert "Tensor [5000] · torch.float32 · cpu · 20 kB · requires grad" in page.text
    assert "requires_grad=True" in page.text and page.tags.count("svg") == 1


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        (np.arange(2000), "min 0 · mean 999.5 · max 1,999"),
        (np.arange(2000) % 2 == 0, "min 0 · mean 0.5 · max 1 · 50.0% zeros"),
        (np.full(2000, 3 + 4j), "min |x| 5 · mean |x| 5 · max |x| 5"),
        (np.full(2000, np.nan), "2,000 NaN"),
        (np.linspace(-3e38, 3e38, 2000, dtype="float32"), "min -3e+38"),
        (np.full(2000, 1e308), "max 1e+308"),
        (np.zeros((0, 5000)), None),
    ],
    ids=["int", "bool", "complex", "nan", "wide", "float64", "empty"],
)
def test_figures_of_dtypes(values, figures):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = torch.tensor(values)._repr_html_()
    assert html is None if figures is None else figures in Page(html).text


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_small_floats(dtype):
    page = Page(torch.full((2000,), 0.5).to(dtype)._repr_html_())
    assert "min 0.5 · mean 0.5 · max 0.5" in page.text and str(dtype) in page.text


def test_a_picture_of_a_matrix():
    values = np.add.outer(np.arange(40.0), np.arange(60.0)).astype("float32")
    values[3, 4] = np.nan
    levels, colors = picture_of(torch.tensor(values)._repr_html_())
    expected = np.floor(np.nan_to_num(values) / 98 * 254)
    known = ~np.isnan(values)
    assert levels.shape == (40, 60) and len(colors) == 256
    assert np.abs(levels.astype(int) - expected)[known].max() <= 1 and levels[3, 4] == 255
    # a NaN has a color of its own, and lighter means larger
    assert np.diff(colors[:255].astype(int).sum(1)).min() >= -1


def test_a_large_picture_has_means_of_blocks():
    values = np.random.default_rng(0).random((160, 400)).astype("float32")
    levels, _ = picture_of(torch.tensor(values)._repr_html_())
    means = values.reshape(32, 5, 80, 5).mean((1, 3), dtype="float64")
    expected = (means - means.min()) / (means.max() - means.min()) * 254
    assert levels.shape == (32, 80) and np.abs(levels - expected).max() <= 1


def test_uneven_blocks():
    levels, _ = picture_of(torch.ones(101, 211)._repr_html_())
    assert levels.shape == (38, 80) and (levels == 0).all()


def state(*tensors):
    """What a display must leave as it is."""
    kept = [(id(tensor.grad_fn), tensor._version, tensor.is_leaf) for tensor in tensors]
    return kept, id(tensors[0].grad), torch.get_rng_state().tolist()


def test_what_is_shown_does_not_change():
    x = torch.rand(50, 60, requires_grad=True)
    (x * 2).sum().backward()
    y = x * 3
    view = y[1:]
    before = state(x, y, view)
    for tensor in (x, y, view, x.grad, x.detach()):
        assert Page(tensor._repr_html_()).tags
    assert before == state(x, y, view)
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((50, 60), 5.0))


def test_traced_and_mapped_tensors():
    seen = []

    def function(x):
        seen.append(x._repr_html_())
        return x.sum()

    x = torch.rand(3, 2000)
    torch.jit(function)(x)
    torch.func.vmap(function)(x)
    torch.func.grad(function)(x)
    assert seen and seen == [None] * len(seen)


def test_deleted_arrays():
    x = torch.rand(2000)
    x._array.delete()
    assert x._repr_html_() is None


def test_print_options():
    x = torch.rand(30, 40)
    torch.set_printoptions(threshold=10_000)
    try:
        assert x._repr_html_() is None
    finally:
        torch.set_printoptions(profile="default")
    assert x._repr_html_() is not None


def test_too_large_for_figures(monkeypatch):
    monkeypatch.setattr(tensor_html, "MOST_ELEMENTS", 1500)
    page = Page(torch.rand(2000)._repr_html_())
    assert "min" not in page.text and "Tensor [2000]" in page.text


def test_subclasses_and_parameters():
    class Named(torch.Tensor):
        pass

    assert "Named [2000]" in Page(torch.rand(2000).as_subclass(Named)._repr_html_()).text
    assert "Parameter [2000]" in Page(nn.Parameter(torch.rand(2000))._repr_html_()).text


def test_long_texts_are_folded():
    x = torch.rand(30, 8, 9, requires_grad=True)
    page = Page((x * 2)._repr_html_())
    assert "MulBackward0" in page.texts[0] and "details" in page.tags
    assert "details" not in Page(torch.rand(30, 80)._repr_html_()).tags
