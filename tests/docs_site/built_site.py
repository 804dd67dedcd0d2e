"""The built site: `make docs-check` runs these tests, and `make test` does not."""

import html
import json
import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SITE = CHECKOUT / "build" / "site"
sys.path.insert(0, str(CHECKOUT / "docs" / "site"))
PAGES = sorted(SITE.rglob("*.html"))

TAG = re.compile(r"<(script|link|img|source|iframe|object|video|audio|use|form)\b[^>]*>")
ADDRESS = re.compile(r'\b(?:src|href|data|action|srcset)="?((?:https?:)?//[^"\s>]*)')
IMPORTED = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]*)")
LINK = re.compile(r'<a\b[^>]*?\bhref="?([^"\s>]*)')
ID = re.compile(r'\bid="?([^"\s>]+)')

# A word, and the pages that readers look for; each is among the first results.
SEARCHES = {
    "sum": ["reference/torch.html#torch.sum"],
    "retain_graph": ["reference/torch.autograd.html#torch.autograd.grad"],
    "NaN": ["wrong_gradients.html"],
    "torch.sum": ["reference/torch.html#torch.sum"],
    "where": ["reference/torch.html#torch.where"],
    "from_jax": ["reference/jaxgrad.html#jaxgrad.from_jax", "from_jax.html"],
    "checkpoint": ["reference/torch.utils.checkpoint.html#torch.utils.checkpoint.checkpoint"],
}
FIRST = 10


@cache
def source(page: Path) -> str:
    return page.read_text()


@cache
def ids(page: Path) -> set[str]:
    return {html.unescape(name) for name in ID.findall(source(page))}


def test_there_are_pages():
    assert len(PAGES) > 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_a_page_loads_nothing_from_elsewhere_and_its_links_resolve(page):
    text = source(page)
    loaded = [ADDRESS.search(tag[0]) for tag in TAG.finditer(text)]
    assert [match[1] for match in loaded if match] == []
    assert IMPORTED.findall(text) == []
    assert [link for link in set(LINK.findall(text)) if not resolves(page, link)] == []


def resolves(page: Path, link: str) -> bool:
    link = unquote(html.unescape(link))
    if link.startswith(("http://", "https://", "mailto:", "javascript:")):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    is_text = target.suffix != ".html" or not anchor
    return target.exists() and (is_text or anchor in ids(target) or anchor.startswith("__"))


def test_styles_load_nothing_from_elsewhere():
    for style in SITE.rglob("*.css"):
        assert IMPORTED.findall(style.read_text()) == [], style


def test_every_public_name_has_an_address():
    import reference

    for name, address in reference.addresses().items():
        page, _, anchor = address.partition("#")
        assert anchor == name and name in ids(SITE / "reference" / page), name


def test_every_public_name_has_a_summary():
    import reference

    for space, entries in reference.namespaces().items():
        for entry in entries:
            value = entry.value
            is_documented = callable(value) and reference._is_ours(value)
            if is_documented and not reference._is_union(value):
                assert (value.__doc__ or "").strip(), f"{space}: {entry.path}"


@cache
def index():
    """The index of the search, of the fields that the browser's has."""
    from lunr import builder, stemmer, tokenizer, trimmer

    exported = json.loads((SITE / "search" / "search_index.json").read_text())
    separator = re.compile(exported["config"]["separator"])
    search_index = builder.Builder()
    search_index.ref("location")
    search_index.field("title", boost=1000)
    search_index.field("text", boost=1)
    search_index.pipeline.add(trimmer.trimmer, stemmer.stemmer)
    search_index.search_pipeline.add(stemmer.stemmer)
    for document in exported["docs"]:
        words = {
            field: [
                tokenizer.Token(word.lower())
                for word in separator.split(re.sub(r"<[^>]+>", " ", document[field]))
                if word
            ]
            for field in ("title", "text")
        }
        search_index.add(
            {"location": document["location"], **words}, {"boost": document.get("boost", 1)}
        )
    return search_index.build()


@pytest.mark.parametrize("word", SEARCHES)
def test_the_search_finds_a_word(word):
    terms = " ".join(f"+{part}" for part in re.split(r"[.\s]", word.lower()))
    places = [result["ref"] for result in index().search(terms)][:FIRST]
    for expected in SEARCHES[word]:
        assert any(place.startswith(expected) for place in places), places
