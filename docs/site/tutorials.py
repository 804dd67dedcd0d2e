"""Pages made from scripts: docs/tutorials/*.py and docs/gallery.py, in jupytext's percent format.

Each script runs from top to bottom, cell by cell. What a cell prints, the value of its last
expression and its figures become part of the page. A page is made anew where the script, jaxgrad or
this file has changed; build/tutorials keeps the others.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import jupytext
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[1]
CHECKOUT = DOCS.parent
NOTEBOOKS = CHECKOUT / "build" / "tutorials"
SECONDS = 900  # for one cell
AT_ONCE = 2  # scripts that run at the same time
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FIGURES = "%config InlineBackend.figure_formats = ['svg']"


def scripts() -> list[Path]:
    gallery = DOCS / "gallery.py"
    return [*sorted((DOCS / "tutorials").glob("*.py")), *([gallery] if gallery.exists() else [])]


def pages() -> dict[str, str | bytes]:
    """The text of each page and the bytes of each picture, by its path in the site."""
    contents, sources = {}, _sources()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for files in pool.map(lambda script: _files(script, sources), scripts()):
            contents.update(files)
    return contents


def _sources() -> bytes:
    """A digest of all that pages depend on besides their scripts."""
    digest = hashlib.sha256(f"{version('jax')} {version('nbclient')}".encode())
    package = [p for p in (CHECKOUT / "jaxgrad").rglob("*") if p.suffix in (".py", ".tsv")]
    table = [CHECKOUT / "derivatives.yaml", CHECKOUT / "help.yaml"]
    rules = [*(CHECKOUT / "rules").glob("*.py"), *table, Path(__file__)]
    for path in sorted([*package, *rules]):
        digest.update(path.read_bytes())
    return digest.digest()


def _files(script: Path, sources: bytes) -> dict[str, str | bytes]:
    key = hashlib.sha256(sources + script.read_bytes()).hexdigest()
    place = script.relative_to(DOCS).with_suffix("")
    kept = NOTEBOOKS / f"{place.name}.ipynb"
    notebook = json.loads(kept.read_text()) if kept.exists() else {}
    if notebook.get("metadata", {}).get("made_from") != key:
        try:
            notebook = _executed(script)
        except Exception as error:
            error.add_note(f"in {script}")
            raise
        notebook["metadata"]["made_from"] = key
        NOTEBOOKS.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(notebook))
    return Page(place.as_posix(), notebook).files()


def _executed(script: Path) -> dict:
    """The script as a notebook with outputs. Raises CellExecutionError where a cell raises."""
    notebook = jupytext.read(script)
    names = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["kernelspec"] = names
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        if (data := DOCS / "tutorials" / "data").exists():
            shutil.copytree(data, f"{folder}/data")
        # sockets with names: ports that are free when they are chosen may be taken when used
        kernel = AsyncKernelManager(transport="ipc", connection_file=f"{sockets}/kernel.json")
        place = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook, km=kernel, timeout=SECONDS, startup_timeout=SECONDS, resources=place
        )
        environment = {**os.environ, "COLUMNS": "88", "JAX_PLATFORMS": "cpu"}
        client.execute(cleanup_kc=True, env=environment)
    return json.loads(jupytext.writes(notebook, fmt="ipynb"))


class Page:
    """The page of an executed script.

    place: `tutorials/digits`.
    """

    def __init__(self, place: str, notebook: dict):
        self.place, self.notebook = place, notebook
        self.pictures: dict[str, bytes] = {}

    def files(self) -> dict[str, str | bytes]:
        cells = [part for cell in self.notebook["cells"] for part in self.cell(cell)]
        name = self.place.rpartition("/")[2]
        cells.append(took(name))
        cells.append(f"[The script of this page]({name}.py)")
        return {f"{self.place}.md": "\n\n".join(filter(None, cells)), **self.pictures}

    def cell(self, cell):
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            yield source
        elif source:
            yield fenced("python", source)
            for output in joined(cell["outputs"]):
                yield self.output(output)

    def output(self, output) -> str:
        if output["output_type"] == "stream":
            return fenced("output", ANSI.sub("", "".join(output["text"])))
        data = {kind: "".join(text) for kind, text in output["data"].items() if "json" not in kind}
        if "text/html" in data:
            return f'<div class="display">\n{data["text/html"].strip()}\n</div>'
        for kind, suffix in (("image/svg+xml", "svg"), ("image/png", "png")):
            if kind in data:
                return self.picture(data[kind], suffix)
        return fenced("output", data.get("text/plain", ""))

    def picture(self, data: str, suffix: str) -> str:
        content = data.encode() if suffix == "svg" else base64.b64decode(data)
        path = f"{self.place}_{len(self.pictures) + 1}.{suffix}"
        self.pictures[path] = content
        return f"![Figure]({path.rpartition('/')[2]})"


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```" if text.strip() else ""


def joined(outputs):
    """The outputs, with neighbouring parts of one stream as one."""
    merged: list[dict] = []
    for output in outputs:
        is_stream = output["output_type"] == "stream"
        if is_stream and merged and merged[-1]["output_type"] == "stream":
            merged[-1]["text"] = [*merged[-1]["text"], *output["text"]]
        else:
            merged.append(dict(output))
    return merged


def took(name: str) -> str:
    """The box with the measured times of a tutorial, from docs/tutorials/times.tsv."""
    path = DOCS / "tutorials" / "times.tsv"
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    rows = [row for row in rows if row[0] == name]
    if not rows:
        return ""
    machine, date = rows[0][3], rows[0][5]
    versions = ", ".join(dict.fromkeys(row[4] for row in rows))
    times = [f"    | {what} | {seconds} |" for _, what, seconds, *_ in rows]
    return "\n".join(
        [
            '!!! note "What it took"\n',
            "    | | seconds |\n    | --- | ---: |",
            *times,
            f"\n    The whole script, measured on {machine} with {versions} on {date}.",
        ]
    )
