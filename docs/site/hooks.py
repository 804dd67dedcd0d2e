"""What the site has besides the pages of docs/: pages that are made when it is built, formulas as
MathML, and no links to files that are not on it.
"""

import html
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File

HERE = Path(__file__).parent
DOCS = HERE.parent
sys.path.insert(0, str(HERE))

import tutorials  # noqa: E402

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
MATH = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config):
    reference = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    operators = sorted((DOCS / "api" / "operators").glob("*.md"))
    _entry(reference, "Operators")[:] = [f"api/operators/{path.name}" for path in operators]
    return config


def _entry(nav, title):
    return next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)


def on_files(files, config):
    for path, content in tutorials.pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links that lead out of docs/ become their text: the site has no repository beside it."""
    folder = (DOCS / page.file.src_uri).parent

    def kept(link):
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(DOCS) else link[1]

    return LINK.sub(kept, markdown)


def on_page_content(content, page, config, files):
    def mathml(found):
        display = "block" if found[1] == "div" else "inline"
        return convert(html.unescape(found[2]), display=display)

    return MATH.sub(mathml, content)
