"""No node that a test here recorded is alive after it."""

import leaks
import pytest


@pytest.fixture(autouse=True)
def no_graph_is_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        yield
