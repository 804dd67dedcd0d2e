"""Profiles as HTML."""

from helpers.html_checks import Page

import jaxgrad as torch

profiler = torch.autograd.profiler


def test_events_and_their_sums():
    x = torch.ones(30, requires_grad=True)
    with profiler.profile() as profile:
        assert profile._repr_html_() is None  # it has not ended
        (x.exp() * 2).sum().backward()
    page = Page(profile._repr_html_())
    names, calls = page.column("Name"), page.column("# of Calls")
    counts = {event.key: str(event.count) for event in profile.key_averages()}
    assert dict(zip(names, calls, strict=True)) == counts and counts["aten::exp"] == "1"
    events = profile.function_events
    assert len(Page(events._repr_html_()).column("Name")) == min(len(events), 100)
    assert "Self CPU time total: " in page.texts[-1]


def test_no_events():
    with profiler.profile() as profile:
        pass
    assert Page(profile._repr_html_()).rows == []


def test_many_events_and_shapes():
    x = torch.ones(3)
    with profiler.profile(record_shapes=True, profile_memory=True) as profile:
        for _ in range(130):
            x + 1
    page = Page(profile.function_events._repr_html_())
    assert len(page.rows) == 101 and "more rows)" in page.texts[-1]
    assert "[[3]]" in page.column("Input Shapes") and "CPU Mem" in page.rows[0]
