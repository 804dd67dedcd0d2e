"""Templates in files, so that a process does not trace what another one has traced.

One file is shipped with jaxgrad (`make templates`), and the user's cache directory has the others.
Each line of the shipped file is a key, a tab, and the records of its templates as JSON. The lines
are sorted by key, so a lookup searches the file on disk and reads one line.

The key of a template is the text of its pattern. A file has a hash of the sources that decide what
is traced, and is valid for these sources under the usual settings of JAX. Otherwise it is ignored.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import mmap
from importlib.util import find_spec
from pathlib import Path

import jax

from ..late import LateModule
from . import dtypes
from .aval import LargeInteger

disk_cache = LateModule("jaxgrad.core.disk_cache")
primitives = LateModule("jaxgrad.core.primitive")
stored = LateModule("jaxgrad.core.host.stored")
template = LateModule("jaxgrad.core.host.template")
templates = LateModule("jaxgrad.core.templates")

PACKAGE = Path(__file__).parents[1]
FILE = PACKAGE / "templates.tsv"
FIRST = "! sources "  # begins the first line; no key sorts before it

# the modules, besides the table and its functions, that decide what is traced and how it is kept
MODULES = (
    *("core/aval.py", "core/copy_slices.py", "core/derivative_rules.py", "core/dtypes.py"),
    "core/elementary.py",
    *("core/host/block.py", "core/host/extents.py", "core/host/stored.py"),
    *("core/host/template.py", "core/jax_internals.py", "core/overloads.py", "core/premises.py"),
    *("core/primitive.py", "core/program.py", "core/promotion.py"),
    *("core/tangent_map.py", "core/template_store.py", "core/templates.py", "core/view_ops.py"),
    *("optim/rules.py", "optim/update_program.py", "ops/documentation.py", "ops/kept.py"),
    *("table/formula.py", "table/grammar.py", "table/rule.py", "table/rule_data.py"),
    *("table/schema.py", "table/tags.py"),
)

# the settings of JAX that decide what is traced, as they are without a user's choice
SETTINGS = {
    "jax_default_prng_impl": "threefry2x32",
    "jax_dynamic_shapes": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_random_seed_offset": 0,
    "jax_threefry_partitionable": True,
}

LONGEST = 1 << 20  # of a record, in bytes
MOST_NOTED = 1024  # programs whose blocks a process writes to the user's directory


@functools.cache
def digest() -> str:
    """The hash of the sources of templates."""
    hasher = hashlib.sha256()
    for path in sources():
        hasher.update(hashlib.sha256(path.read_bytes()).digest())
    return hasher.hexdigest()[:32]


def sources() -> list[Path]:
    """The table, its help, the modules of its functions, and the modules of jaxgrad that decide
    what is traced.
    """
    modules = [*sorted(rules().glob("*.py")), *[PACKAGE / name for name in MODULES]]
    top = rules().parent
    return [top / "derivatives.yaml", top / "help.yaml", *modules]


@functools.cache
def rules() -> Path:
    """The folder of the functions that the shipped table calls."""
    return Path(find_spec("jaxgrad.rules").origin).parent


@functools.cache
def table_path() -> str:
    return str(rules().parent / "derivatives.yaml")


# whether templates of files are used
is_on = True


def is_usual() -> bool:
    """Whether settings are those under which templates of files hold."""
    return is_on and has_usual_jax() and dtypes.get_default_dtype() is dtypes.float32


def has_usual_jax() -> bool:
    """Whether the settings of JAX, which a thread may have of its own, are those of templates."""
    config = jax.config
    return all(getattr(config, name, usual) == usual for name, usual in SETTINGS.items())


# ---- keys


def text_or_none(make_text) -> str | None:
    """The text of what is called; None where it has none, or where it raises ValueError."""
    try:
        return make_text()
    except ValueError:
        return None


def key_of(text: str | None, kinds, shapes) -> str | None:
    """The key of a pattern; None if it is not kept. text: that of what is called, if it has one."""
    if text is None or not is_usual():
        return None
    supply = iter(shapes)
    inputs = [_NUMBERS.get(kind) or f"{kind.name}{_shape_text(next(supply))}" for kind in kinds]
    return " ".join([text, ",".join(inputs), *map(_shape_text, supply)])


def text_of_call(primitive, structure) -> str | None:
    """The text of a shipped operator and what it is called with, besides arrays."""
    if primitive.rule.path != table_path() or primitive.scope.parent is not None:
        return None
    return f"{primitive.rule.schema.full_name}({','.join(map(text_of, structure))})"


_NUMBERS = {bool: "b", int: "i", LargeInteger: "l", float: "f", complex: "c"}


def text_of(part) -> str:
    """A part of a structure as text, where different ones differ. Raises ValueError for what has no
    text of its own.
    """
    kind = type(part)
    if part is primitives.ARRAY:
        return "@"
    if part is primitives.EXTENT:
        return "#"
    if part is None or kind in (bool, int, float, complex):
        return repr(part)
    if kind is str:
        return json.dumps(part)
    if kind is tuple:
        return f"[{','.join(map(text_of, part))}]"
    if kind is dtypes.dtype:
        return part.name
    raise ValueError(f"an argument of the type {kind.__name__}")


def _shape_text(shape) -> str:
    extents = [str(extent) if extent >= 0 else f"d{-1 - extent}" for extent in shape]
    return f"[{','.join(extents)}]"


# ---- the file that is shipped


class File:
    """A file of templates, read from disk line by line. It has `None` for missing keys."""

    def __init__(self, path: Path):
        self.content = None
        try:
            with open(path, "rb") as file:
                self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # it is missing or empty
            return
        first = self.content[: len(FIRST) + 32]
        self.is_current = first == (FIRST + digest()).encode()
        if not self.is_current:
            self.content = None

    def find(self, key: str) -> bytes | None:
        """The record of a key, by bisection."""
        content = self.content
        if content is None:
            return None
        wanted = key.encode() + b"\t"
        low, high = 0, len(content)
        while low < high:  # the line begins in this range
            middle = (low + high) // 2
            begin = content.rfind(b"\n", 0, middle) + 1
            end = content.find(b"\n", begin)
            end = len(content) if end < 0 else end
            if content[begin : begin + len(wanted)] == wanted:
                return content[begin + len(wanted) : end]
            if content[begin : content.find(b"\t", begin) + 1] < wanted:
                low = end + 1
            else:
                high = begin
        return None


@functools.cache
def shipped() -> File:
    return File(FILE)


def write(path: Path, records: dict[str, list]):
    """Write a file of templates: the records of each key, in the order of the keys."""
    lines = sorted(key.encode() + b"\t" + _line(record) for key, record in records.items())
    content = b"\n".join([(FIRST + digest() + "\t").encode(), *lines, b""])
    # another process may have the old file open, whose end must not move
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


def _line(record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


# ---- the user's own directory

_noted: list[tuple] = []


def user_cache():
    """The cache in the user's directory; None where it is off."""
    return disk_cache.current()


def _cache_name(key: str, extents) -> str:
    """The name of a record in the user's directory. Other versions of JAX trace otherwise."""
    text = "\n".join([digest(), jax.__version__, key, ",".join(map(str, extents))])
    return "template-" + hashlib.sha256(text.encode()).hexdigest()


class _Listing:
    """The names in the directory when it was first read. Most programs have no record, and it takes
    a tenth of a program's first call to open a file that does not exist.
    """

    def __init__(self):
        self.cache, self.names = None, ()

    def get(self, cache, key: str, extents):
        """The templates in an entry of the directory."""
        if self.cache is not cache:
            self.cache, self.names = cache, cache.names()
        name = _cache_name(key, extents)
        return _read(cache.get(name)) if name in self.names else []


_listing = _Listing()


def keep(key: str, records):
    """Keep the records of the templates of a pattern, of which this process has made one."""
    cache = user_cache()
    if cache is not None and is_usual():
        cache.put(_cache_name(key, ()), _line(records))


def find_exact(key: str, extents):
    """The templates of a program of exact extents."""
    cache = user_cache()
    if cache is None or not is_usual():
        return []
    return _listing.get(cache, key, ("exact", *extents))


def note(program, block):
    """Keep the block of a traced program, to be written when the process ends: programs of its
    pattern are too rare for a template.
    """
    is_kept = program.pattern is not None and len(_noted) < MOST_NOTED
    if not is_kept or user_cache() is None or not is_usual():
        return
    pattern, extents = program.pattern
    if pattern.key is not None and program.outputs:  # which is to be traced first
        _noted.append((pattern.key, extents, templates.traits_of(program), block))


@atexit.register
def write_noted():
    """Write what `note` has taken."""
    noted, _noted[:] = [*_noted], []
    cache = user_cache()
    for key, extents, traits, block in noted if cache is not None else ():
        with contextlib.suppress(ValueError):  # of a program that is not kept
            records = [[traits, [], stored.data_of(block)]]
            cache.put(_cache_name(key, ("exact", *extents)), _line(records))


# ---- both


def find(key: str) -> list:
    """The templates of a pattern from a file. Those of the directory include those of the shipped
    file, which the process had that made them.
    """
    if not is_usual():
        return []
    kept = _listing.get(user_cache(), key, ()) if user_cache() is not None else []
    return kept or _read(shipped().find(key))


def _read(line: bytes | None) -> list:
    """The templates that a line has."""
    if line is None or len(line) > LONGEST:
        return []
    try:
        records = json.loads(line)
        if type(records) is not list:
            return []
        return [
            template.Template(record, functools.partial(_record, line, place))
            for place, record in enumerate(records[: templates.TEMPLATES])
        ]
    except (ValueError, RecursionError):
        return []


def _record(line: bytes, place: int):
    return json.loads(line)[place]
