"""Docstrings as HTML: prose with descriptions of arguments, and operators with their sections.

A docstring begins with its summary. Paragraphs follow, in which `name: text` describes an argument,
and at the end stand examples. An operator's has sections instead: "Arguments:", "Formulas:".
"""

import html
import inspect
import re
from collections.abc import Callable

from formulas import mathml, tex
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer

SECTION = re.compile(r"(Arguments|Returns|Raises|Formulas|Example):\n")
CODE = re.compile(r"`([^`]+)`")
PAGE = re.compile(r"\bdocs/(\w+)\.md\b")
TO_PAGE = r'<a href="../\1.html">\1</a>'
NAMES = r"\*{0,2}\w+(?:(?:, | and )\*{0,2}\w+)*"
DEFINITION = re.compile(rf"({NAMES}): (?=\S)")
SENTENCE = re.compile(r"(?<=\.) (?=\S)")
NEXT = re.compile(rf"; (?=({NAMES}): \S)")  # an argument in the sentence of another one
# a sentence on what the description of an argument does not belong to
OTHERS = re.compile(r"(?:The )?[Oo]ther (?:arguments|options)|Arguments and errors|The result is")
PROMPTS = (">>>", "...")
IMPORT = re.compile(r"\bimport\b")
OURS = re.compile(r"(?<![\w.\"'])jaxgrad\.(?=\w)")
VERDICT = re.compile(r"(Raises|Returns):? |(Sources?|Attributes|Shapes?): ")
ARGUMENT = re.compile(r"(\w+) \((.*?)\)(?:: (.*))?")
FORMATTER = HtmlFormatter(nowrap=True)
Link = Callable[[str], str | None]


class Docstring:
    """The HTML of a docstring.

    parameters: the names of the arguments; link: gives the address of what a piece of code names,
    None where it is no public name.
    """

    def __init__(self, text: str, parameters=(), link: Link = lambda name: None):
        self.parameters, self.link = set(parameters), link
        paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
        self.summary = self.inline(_one_line(paragraphs[0]))
        self.blocks = paragraphs[1:]

    def html(self) -> str:
        """Everything but the summary."""
        return _grouped(part for block in self.blocks for part in self.block(block))

    def inline(self, text: str) -> str:
        pieces = CODE.split(text)
        rendered = [PAGE.sub(TO_PAGE, html.escape(piece, False)) for piece in pieces]
        rendered[1::2] = map(self.code, pieces[1::2])
        return "".join(rendered)

    def code(self, text: str) -> str:
        shown = f"<code>{html.escape(_one_line(text), False)}</code>"
        address = self.link(text.removesuffix("()"))
        return f'<a href="{address}">{shown}</a>' if address else shown

    def block(self, text: str):
        """The parts of a block: pairs of terms and HTML, and HTML."""
        title = SECTION.match(text)
        if title:
            yield from getattr(self, title[1].lower())(text[title.end() :])
        elif text.startswith(">>>"):
            yield example(text)
        elif all(line.startswith("    ") for line in text.splitlines()):
            yield literal(inspect.cleandoc(text))
        else:
            prose, prompt, doctest = text.partition("\n>>> ")
            yield from self.prose(_one_line(prose))
            yield from [example(prompt.strip() + " " + doctest)] if prompt else []

    def prose(self, text: str):
        """A paragraph: sentences that describe arguments become pairs of a term and HTML."""
        term, sentences = None, []
        text = NEXT.sub(
            lambda pair: ". " if self.parameters.issuperset(_names(pair[1])) else pair[0], text
        )
        for position, sentence in enumerate(SENTENCE.split(text)):
            pair = self.term(sentence, position == 0)
            ends = term and sentences and (term in ("Raises", "Returns") or OTHERS.match(sentence))
            if pair or ends:
                yield from self.described(term, sentences)
                term, sentences = None, []
            if pair:
                term, sentence = pair
            sentences.append(sentence)
        yield from self.described(term, sentences)

    def term(self, sentence: str, is_first: bool) -> tuple[str, str] | None:
        """What a sentence describes, and the rest of it; None for any other sentence."""
        verdict, definition = VERDICT.match(sentence), DEFINITION.match(sentence)
        if verdict:
            return verdict[1] or verdict[2], sentence[verdict.end() :]
        if definition is None:
            return None
        names = _names(definition[1])
        is_known = self.parameters.issuperset(names)
        is_name = is_first and len(names) < 5 and definition[1][0].islower()
        if not (is_known or is_name):
            return None
        shown = ", ".join(f"<code>{name}</code>" for name in names)
        return shown, sentence[definition.end() :]

    def described(self, term, description):
        text = self.inline(" ".join(description))
        if term:
            yield term, text
        elif text:
            yield f"<p>{text}</p>"

    # the sections of an operator

    def arguments(self, text):
        for line in _lines(text):
            name, kind, description = ARGUMENT.fullmatch(line).groups()
            kind = f'<code class="type">{html.escape(kind)}</code>'
            parts = kind, self.inline(description or "")
            yield f"<code>{name}</code>", " ".join(filter(None, parts))

    def returns(self, text):
        kind, _, rest = _one_line(text).rpartition(": ") if "): " in text else _kind(text)
        description = f" {self.inline(rest)}" if rest else ""
        yield "Returns", f'<code class="type">{html.escape(kind)}</code>{description}'

    def raises(self, text):
        for line in _lines(text):
            kind, _, description = line.partition(": ")
            yield "Raises", f"<code>{kind}</code>: {self.inline(description)}"

    def formulas(self, text):
        yield "".join(_formulas(text))

    def example(self, text):
        yield example(inspect.cleandoc("\n" + text))


def _names(text):
    return re.split(r", | and ", text.replace("*", ""))


def _kind(text):
    return _one_line(text).partition(": ")


def _lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _formulas(text):
    yield '<table class="formulas" data-search-exclude>'
    for line in inspect.cleandoc("\n" + text).splitlines():
        if not line.startswith(" "):
            yield f'<tr><th colspan="2"><code>{html.escape(line)}</code></th></tr>'
            continue
        title, _, formula = line.strip().partition(": ")
        is_word = " " in formula and not re.search(r"[()*/]", formula)
        shown = html.escape(formula) if is_word else f"<code>{html.escape(formula)}</code>"
        in_tex = tex(formula) if re.search(r"[(*/]", formula) else None
        if in_tex:
            shown += f' <span class="tex">{mathml(in_tex)}</span>'
        yield f"<tr><td>{title}</td><td>{shown}</td></tr>"
    yield "</table>"


def _grouped(parts) -> str:
    """The parts as HTML, with neighbouring pairs as one list of descriptions."""
    html_parts, is_list, last = [], False, None
    for part in parts:
        is_pair = isinstance(part, tuple)
        if is_pair != is_list:
            html_parts.append('<dl class="described">' if is_pair else "</dl>")
            is_list, last = is_pair, None
        if is_pair:
            term, description = part
            html_parts.append(f"<dt>{term if term != last else ''}</dt><dd>{description}</dd>")
            last = term
        else:
            html_parts.append(part)
    return "".join([*html_parts, "</dl>" if is_list else ""])


def _as_users_write(line: str) -> str:
    line = line.partition("  # doctest:")[0]
    is_code = line.startswith(PROMPTS) and not IMPORT.search(line)
    return OURS.sub("torch.", line) if is_code else line


def literal(text: str) -> str:
    return f"<pre><code>{html.escape(text, False)}</code></pre>"


def example(text: str) -> str:
    """A doctest, with jaxgrad under the name that users give it, `torch`. What the reader copies is
    its code, without prompts and output.
    """
    shown = [_as_users_write(line) for line in text.splitlines()]
    text = "\n".join(shown)
    copied = html.escape("\n".join(line[4:] for line in shown if line.startswith(PROMPTS)))
    shown = highlight(text, PythonConsoleLexer(), FORMATTER).rstrip()
    return (
        '<div class="highlight" data-search-exclude>'
        f'<pre><code data-copy="{copied}">{shown}</code></pre></div>'
    )
