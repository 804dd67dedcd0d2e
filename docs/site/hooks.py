"""What the site has besides the pages of docs/: pages that are made when it is built, formulas as
MathML, and no links to files that are not on it.
"""

import html
import json
import re
import sys
from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

from jaxgrad import coverage

HERE = Path(__file__).parent
DOCS = HERE.parent
sys.path.insert(0, str(HERE))

import formulas  # noqa: E402
import reference  # noqa: E402
import search_words  # noqa: E402
import tutorials  # noqa: E402

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
# How much a word on a page counts in the search, by the beginning of its path. A name of a much
# used namespace comes before those of others that begin with the same letters.
BOOSTS = {
    **{f"reference/{name}.md": 5 for name in {entry.space for entry in coverage.torch_names()}},
    **{f"reference/{name}.md": 5 for name in reference.FURTHER},
    **{
        "reference/torch.md": 8,
        "reference/torch.nn.functional.md": 10,
        "reference/torch.nn.md": 12,
    },
    **{"reference/torch.Tensor.md": 7, "reference/torch.distributions.md": 2, "gallery": 2},
    **{"reference/jaxgrad.md": 5},
    **{f"reference/torch.{name}.md": 8 for name in ("sparse", "nested", "masked")},
    **{
        f"reference/torch.{name}.md": 4
        for name in ("profiler", "utils.benchmark", "distributed", "cuda")
    },
    **{"reference/torch.utils.tensorboard.md": 4, "reference/torch.nn.attention.md": 1},
    **{"reference/torch.fx.passes.split_module.md": 1},
    **{"reference/jaxgrad.ops": 0.1, "reference/": 0.5, "api/": 0.1, "tutorials/": 10, "": 20},
}
ALONE = ("index.md", "gallery.md", "figures.md")  # pages without neighbours to list at their side
ROWS = "api/autograd_rows.md"
TESTED = re.compile(
    r"^\| [A-Z]\d+ \| (.*?) \| ((?:\[\w+\]\(\S*\)(?:<br>)?)*) \| (.*?) ?\|$", re.MULTILINE
)
THREE, FOUR = (f"\n{'| --- ' * count}|" for count in (3, 4))
ID = re.compile(r' id="([^"]+)"')
# `<code>` in a sentence, not the one that a <pre> begins with
NAME = re.compile(r"(?<!<span></span>)(<code>)([^<\n]+)(?=</code>)")
CELL = re.compile(r"(<td\b.*?</td>)", re.DOTALL)
HEADING = re.compile(
    r'(<h[34] class="name"[^>]*><span class="space">|<h[12] id="[^"]*">)([\w.]*)(</span>)?([\w.]*)'
    r'(?=$|<a class="headerlink")'
)
OUTPUT = re.compile(r'<div class="language-output highlight">(.*?)</div>', re.DOTALL)
COLUMNS = re.compile(r"\S {2,}\S|^ *\[|\[\[", re.MULTILINE)
CARD = re.compile(r"^(?=## )", re.MULTILINE)
# operators that functions of torch and gradients consist of
INNER = re.compile(r"## (?:ops\._|\S*_backward\n)")
PARTS = """## Parts of functions and of gradients

Functions of torch and their gradients call these operators; programs need not.

"""
MATH = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config):
    chapter = _entry(config.nav, "Reference")
    operators = sorted((DOCS / "api" / "operators").glob("*.md"))
    _entry(chapter, "Operators")[:] = [
        {_family(path): f"api/operators/{path.name}"} for path in operators
    ]
    _entry(chapter, "Namespaces")[:] = [
        {space: f"reference/{space}.md"} for space in reference.namespaces()
    ]
    config.theme.static_templates.discard("404.html")  # its links need the address of the site
    return config


def _family(path):
    """What the heading of a page of operators says behind "Operators: "."""
    return path.read_text().partition("\n")[0].removeprefix("# Operators: ")


def _entry(nav, title):
    return next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)


def on_files(files, config):
    for path, content in {**reference.pages(), **tutorials.pages()}.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links that lead out of docs/ become their text: the site has no repository beside it."""
    boost = next((b for start, b in BOOSTS.items() if page.file.src_uri.startswith(start)))
    # the reference has all that the cards say and readers search for
    is_card = page.file.src_uri.startswith("api/operators/")
    page.meta.setdefault("search", {"exclude": True} if is_card else {"boost": boost})
    if page.file.src_uri in ALONE:
        page.meta.setdefault("hide", ["navigation"])
    folder = (DOCS / page.file.src_uri).parent

    def kept(link):
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(DOCS) else link[1]

    if page.file.src_uri == ROWS:
        markdown = with_counts_of_tests(markdown)
    if is_card:
        markdown = public_first(markdown)
    return LINK.sub(kept, markdown)


def public_first(markdown):
    """A page of cards with those of functions that users call before the others."""
    start, *cards = CARD.split(markdown)
    others = [card for card in cards if INNER.match(card)]
    public = [card for card in cards if card not in others]
    heading = [PARTS] if others else []
    if others and not public:  # no entry of the reference has an example for them
        name = others[0].split()[1].removeprefix("ops.")
        heading.append(f"```sh\npython -m jaxgrad ops {name}  # prints the first of them\n```\n\n")
    return "".join([start, *public, *heading, *others])


def with_counts_of_tests(markdown):
    """The rows of torch.autograd without their letters, and with the number of their tests."""

    def shown(row):
        count = row[2].count("[")
        return f"| {row[1]} | {count or 'none'} | {row[3]} |"

    return TESTED.sub(shown, markdown.replace("| row | what |", "| what |").replace(FOUR, THREE))


def on_page_content(content, page, config, files):
    if page.file.src_uri.startswith("reference/"):
        space = page.file.src_uri.removeprefix("reference/").removesuffix(".md")
        content += reference.body(space)
        page.present_anchor_ids.update(ID.findall(content))
        page.toc = get_toc(reference.contents(space))

    if page.file.src_uri.startswith("api/operators/"):
        content = reference.with_examples(content)
    if page.file.src_uri == "api/placeholders.md":
        content = f'<div class="modules">{content}</div>'

    content = OUTPUT.sub(marked_if_words, content)

    def shown(match):
        display = "block" if match[1] == "div" else "inline"
        return formulas.mathml(html.unescape(match[2]), display)

    return MATH.sub(shown, content)


def marked_if_words(block):
    """An output without columns is of the class `words`: it wraps on a phone too."""
    if COLUMNS.search(re.sub(r"<[^>]*>", "", block[1])):
        return block[0]
    return block[0].replace("language-output", "language-output words", 1)


def on_post_page(output, page, config):
    """Long names may break after dots, underscores and slashes, and in headings and tables before a
    capital. The search has its index by then.
    """

    def heading(match):
        first, last = (reference.parted(name, capitals=True) for name in match.group(2, 4))
        return f"{match[1]}{first}<wbr>{match[3]}{last}" if match[3] else match[1] + first

    def names(text, capitals):
        return NAME.sub(lambda code: code[1] + in_one(reference.parted(code[2], capitals)), text)

    parts = CELL.split(HEADING.sub(heading, output))  # the cells have odd places
    return "".join(names(part, capitals=place % 2 == 1) for place, part in enumerate(parts))


def in_one(code):
    """An arrow does not break."""
    return code.replace("-&gt;", '<span class="arrow">-&gt;</span>')


@event_priority(-100)  # after the plugin that writes the index
def on_post_build(config):
    """More words for the search, and its index as a script too, for pages that no server sends."""
    folder = Path(config.site_dir) / "search"
    index = json.loads((folder / "search_index.json").read_text())
    search_words.add_words(index["docs"])
    text = json.dumps(index)
    (folder / "search_index.json").write_text(text)
    (folder / "search_index.js").write_text(f"var __index = {text}")
