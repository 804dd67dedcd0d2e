"""After every test here no node that it made is alive."""

import leaks
import pytest


@pytest.fixture(autouse=True)
def no_graph_is_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        yield
