"""Every page of the built site in headless Chromium, at two widths and in both palettes: no errors
in the console, no request that leaves the site, nothing wider than the window; and what the search
finds.

    make docs-check       runs it where Chromium is installed; screenshots: build/screenshots
"""

import argparse
import functools
import http.server
import re
import shutil
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

CHECKOUT = Path(__file__).resolve().parents[2]
SITE = CHECKOUT / "build" / "site"
PICTURES = CHECKOUT / "build" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-sync", "--disable-component-update"),
    "--disable-background-networking",
]
WIDTHS = (390, 1280)
# by query a pattern for the first result: the page, or its first section
SEARCHES = [
    line.split("\t") for line in (Path(__file__).parent / "searches.tsv").read_text().splitlines()
]
OF_FILES = 5  # of them are tried without a server, and in a narrow window
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def served():
    """The address of the site, which a thread serves."""
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://localhost:{server.server_port}"


class Visit:
    """One window of the browser; `wrong` gathers what it found."""

    def __init__(self, browser, root: str, width: int, scheme: str):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page, self.root, self.wrong = context.new_page(), root, []
        self.name = f"{width}_{scheme}"
        self.page.on("console", self.message)
        self.page.on("pageerror", lambda error: self.complain(f"error: {error}"))
        self.page.on("request", self.request)

    def complain(self, text):
        self.wrong.append(f"{self.page.url.removeprefix(self.root)} ({self.name}): {text}")

    def message(self, message):
        if message.type in ("error", "warning"):
            self.complain(f"console: {message.text}")

    def request(self, request):
        if not request.url.startswith((self.root, "data:", "blob:")):
            self.complain(f"asks for {request.url}")

    def open(self, path: str, picture: bool):
        self.page.goto(f"{self.root}/{path}", wait_until="load")
        if (wider := self.page.evaluate(WIDER)) > 0:
            self.complain(f"{wider} pixels wider than the window")
        if picture:
            name = path.removesuffix(".html").replace("/", "_")
            self.page.screenshot(path=PICTURES / f"{name}_{self.name}.png")

    def search(self, queries):
        """Type the queries one after another, as users do, and look at the first results."""
        self.page.goto(f"{self.root}/index.html", wait_until="networkidle")
        self.page.keyboard.press("/")
        field = self.page.locator("input.md-search__input")
        results = self.page.locator("a.md-search-result__link")
        field.press_sequentially("ab", timeout=90_000)
        results.first.wait_for(timeout=90_000)
        for text, expected in queries:
            field.fill(text[:-1])
            field.press_sequentially(text[-1], timeout=90_000)
            self.page.wait_for_timeout(1500)  # until the results are those of the whole query
            links = results.evaluate_all("links => links.slice(0, 2).map(link => link.href)")
            links = [link.partition("?")[0] + "#" + link.partition("#")[2] for link in links]
            pages = {link.partition("#")[0] for link in links[:1]}
            first = [link.rstrip("#") for link in links if link.partition("#")[0] in pages]
            if not any(re.search(expected, link) for link in first):
                self.complain(f"search for {text!r} finds {links}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="*", help="all if there is none: index.html")
    chosen = parser.parse_args().pages
    pages = chosen or sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    served_from, wrong = served(), []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                visit = Visit(browser, served_from, width, scheme)
                for path in pages:
                    visit.open(path, picture=scheme == "light" or path.count("/") == 0)
                wrong += visit.wrong
        for root, width, queries in (
            (served_from, WIDTHS[1], SEARCHES),
            (served_from, WIDTHS[0], SEARCHES[:OF_FILES]),
            (f"file://{SITE}", WIDTHS[1], SEARCHES[:OF_FILES]),
        ):
            visit = Visit(browser, root, width, "light")
            visit.search(queries)
            wrong += visit.wrong
        browser.close()
    raise SystemExit("\n".join(dict.fromkeys(wrong)) or 0)


if __name__ == "__main__":
    main()
