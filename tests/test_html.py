"""Tables as HTML."""

from helpers.html_checks import Page

from jaxgrad import html


def test_a_table():
    page = Page(html.table(["a", "<b>"], [[1234, "x & y"], [0.5, None]], numbers=[0]))
    assert page.rows == [["a", "<b>"], ["1,234", "x & y"], ["0.5", "None"]]
    assert html.table(["a", "b"], [], numbers=[1]).count("text-align:right") == 1


def test_lines_and_code():
    assert Page(html.line("<i>", is_bold=True)).texts == ["<i>"]
    assert Page(html.code("a\n<b>", "title")).tags == ["pre"]
    page = Page(html.code("a\n" * 30, "<title>"))
    assert page.tags == ["details", "summary", "pre"] and page.texts[0] == "<title>"
