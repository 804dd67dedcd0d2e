"""Optimizers as HTML."""

from helpers.html_checks import Page

import jaxgrad as torch
from jaxgrad import nn, optim


def test_groups_options_and_state():
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    groups = [{"params": first.parameters(), "lr": 0.25}, {"params": second.parameters()}]
    optimizer = optim.SGD(groups, lr=0.0, momentum=0.5)
    page = Page(optimizer._repr_html_())
    assert page.column("tensors") == ["2", "2"] and page.column("elements") == ["16", "10"]
    assert page.column("lr") == ["0.25", "0"] and page.column("momentum") == ["0.5", "0.5"]
    assert page.texts[0] == "SGD" and page.texts[-1] == "no state yet"
    assert not {"nesterov", "maximize", "foreach", "params"} & set(page.rows[0])  # not set
    second(first(torch.ones(5, 3))).sum().backward()
    optimizer.step()
    assert Page(optimizer._repr_html_()).texts[-1] == "state: 4 tensors, 0.00 MB"


def test_tensors_among_the_options_and_names():
    layer = nn.Linear(3, 4)
    optimizer = optim.Adam(layer.named_parameters(), lr=torch.tensor(0.5), amsgrad=True)
    page = Page(optimizer._repr_html_())
    assert page.column("lr") == ["0.5"] and page.column("amsgrad") == ["True"]
    assert page.column("betas") == ["(0.9, 0.999)"] and "param_names" not in page.rows[0]


def test_nothing_changes():
    layer = nn.Linear(3, 4)
    optimizer = optim.AdamW(layer.parameters())

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        layer(x).sum().backward()
        optimizer.step()

    step(torch.ones(5, 3))
    assert Page(optimizer._repr_html_()).tags
    step(torch.ones(5, 3))
    assert step.count == 1
