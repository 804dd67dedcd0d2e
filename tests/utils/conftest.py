"""No node that a test here recorded is alive after it."""

import pytest
from helpers import leaks


@pytest.fixture(autouse=True)
def no_graph_is_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        yield
