"""What a notebook shows, as HTML: whether it is well-formed, safe and readable, and its texts."""

from html.parser import HTMLParser

EMPTY = ("br", "hr", "img")  # elements without an end
# what a display has no use for: code, and addresses outside of the page
FORBIDDEN = ("<script", "javascript:", "onload", "onclick", "<link", "<style", "@import", "url(")


class Page(HTMLParser):
    """The texts of HTML, and the rows of its tables."""

    def __init__(self, html: str):
        super().__init__()
        self.opened, self.texts, self.rows, self.tags = [], [], [], []
        lowered = html.lower().replace("http://www.w3.org/2000/svg", "").replace("url(#", "")
        assert not [word for word in (*FORBIDDEN, "http://", "https://") if word in lowered]
        # the colors of the page: a background of one's own would be wrong on light or on dark pages
        assert "background:#" not in lowered and "background:white" not in lowered
        self.feed(html)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in EMPTY:
            self.opened.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.opened and self.opened[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def column(self, title: str) -> list[str]:
        """The cells below a title of the first table, to the last row of that length."""
        at = self.rows[0].index(title)
        return [row[at] for row in self.rows[1:] if len(row) == len(self.rows[0])]
