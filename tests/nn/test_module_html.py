"""Modules as HTML."""

import pytest
from helpers.html_checks import Page

import jaxgrad as torch
from jaxgrad import nn


def page_of(module):
    return Page(module._repr_html_())


def test_layers_with_settings_and_parameters():
    page = page_of(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.LayerNorm(4))))
    assert page.column("layer") == [
        name.replace(" ", "\N{NO-BREAK SPACE}")
        for name in (
            *("Sequential", "    0: Linear", "    1: ReLU", "    2: Sequential"),
            "        0: LayerNorm",
        )
    ]
    assert page.column("settings")[1] == "in_features=3, out_features=4, bias=True"
    assert page.column("parameters")[1:3] == ["weight [4, 3], bias [4]", ""]
    assert page.column("number") == ["", "16", "", "", "8"] and page.texts[-1] == "24 parameters"


def test_shared_frozen_and_lazy_parameters():
    shared = nn.Linear(3, 3, bias=False)
    model = nn.Sequential(shared, shared, nn.Linear(3, 1).requires_grad_(False), nn.LazyLinear(2))
    page = page_of(model)
    assert page.column("number") == ["", "9", "", "4", ""]
    assert page.column("parameters")[-1] == "weight ?, bias ?"
    assert page.texts[-1] == "13 parameters, 9 of them trainable"


def test_text_is_escaped():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<script>"

    assert page_of(Odd()).column("settings") == ["<script>"]


@pytest.mark.slow
def test_a_large_model_is_cut_at_a_depth():
    model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2, 16) for _ in range(30)])
    page = page_of(model)
    assert len(page.rows) == 1 + 31
    # of a layer: attention, two layers of a feed-forward network, two norms
    one = 3 * 8 * 8 + 3 * 8 + 8 * 8 + 8 + 8 * 16 + 16 + 16 * 8 + 8 + 2 * 2 * 8
    assert page.column("number")[1:] == [f"{one:,}"] * 30
    assert f"{30 * one:,} parameters; 270 more modules inside of these" == page.texts[-1]


@pytest.mark.parametrize("module", [nn.ReLU(), nn.ModuleList(), nn.Module()])
def test_without_parameters(module):
    assert page_of(module).texts[-1] == "0 parameters"


def test_nothing_changes():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    compiled = torch.jit(lambda x: model(x))
    compiled(torch.ones(2, 3))
    page_of(model)
    compiled(torch.ones(2, 3))
    assert compiled.count == 1 and page_of(torch.compile(model)).tags
