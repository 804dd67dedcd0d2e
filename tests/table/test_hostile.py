"""Input that was made to do harm is refused with clear errors after little work, and none of it
runs.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs
from helpers.work import at_most

from jaxgrad.cli import known_names
from jaxgrad.table import TableError, loads, reader
from jaxgrad.table.outline import outline
from jaxgrad.table.source import decode

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "derivatives.yaml"

# Of functions. Files at the limits of the reader take half of them, and others a tenth.
MOST_CALLS = 1_000_000

FORMULAS = [
    # reaching for Python's insides
    "__import__('os').system('x')",
    "().__class__.__bases__[0].__subclasses__()",
    "grad.__class__",
    "grad.__reduce__()",
    "grad.__globals__",
    "grad.sum.__func__",
    "None.x",
    "True.__class__",
    "sin.__call__(grad)",
    "grad.shape.__class__",
    "grad.T.__array_interface__",
    # more of Python than there is
    "(lambda: 1)()",
    "lambda x: x",
    "[x for x in (1,2)]",
    "{x: x for x in (1,2)}",
    "(x for x in (1,2))",
    "{1:2}",
    "{1,2}",
    "f'{grad.__class__}'",
    "'{0.__class__}'.format(grad)",
    "(self:=grad)",
    "await grad",
    "yield grad",
    "sin(*self)",
    "sin(**self)",
    "sin(grad, out=grad)",
    "sin(grad, _private=grad)",
    "grad; import os",
    "import os",
    "grad\nimport os",
    "grad[grad]",
    "grad[0:1]",
    "grad[...]",
    "...",
    "self<grad<self",
    "grad is self",
    "grad in self",
    "grad not in self",
    "grad # a comment",
    "`grad`",
    "grad\\\n",
    "grad @ \t self",
    # functions and methods that are on no list
    "eval('1')",
    "exec('1')",
    "open('/etc/passwd')",
    "getattr(grad,'x')",
    "globals()",
    "print(grad)",
    "grad if grad else exit()",
    "grad.tofile('/tmp/x')",
    "grad.save(..)",
    "grad.save()",
    "grad.dump(..)",
    "grad.dump('x')",
    "grad.numpy()",
    "grad.data",
    "grad.at[0].set(1)",
    "os.system('x')",
    "jax.pure_callback(print,grad,grad)",
    "lax.map(sin, grad)",
    "jnp.save('/tmp/x', grad)",
    "sin",
    "sin(sin)",
    "sin()()",
    "(sin)(grad)(grad)",
    # too large, too many, too deep
    "9**9**9",
    "grad*10**10**10",
    "2**99999999",
    "grad**1e300",
    "grad**99999999",
    "'a'*10**9",
    "('a',)*1000000000",
    "self.shape*1000000000",
    "jnp.array_split(grad, 1000000000)[0]",
    "jnp.diff(grad, 1000000000)",
    "jnp.polyval(grad, grad, unroll=100000)",
    "grad*1e999",
    "grad*9223372036854775808",
    "grad*0x" + "f" * 400,
    "grad*" + "9" * 900,
    "x" * 100,
    "'" + "x" * 100 + "'",
    "grad+" * 100 + "grad",
    "(" * 200 + "grad" + ")" * 200,
    "(" * 41 + "grad" + ")" * 41,
    "-" * 5000 + "grad",
    "-" * 900 + "grad",
    "not " * 200 + "grad",
    "+".join(["grad"] * 5000),
    "grad if grad else " * 50 + "grad",
    "grad**" * 150 + "grad",
    "grad." + "mT." * 300 + "mT",
    "sin(" * 45 + "grad" + ")" * 45,
    "(" + "grad," * 65 + ")",
    "\\N{LATIN SMALL LETTER A}",
    # text
    "grad@'x'",
    "grad*b'abc'",
    "b'abc'",
    "1j*grad",
    "not_implemented('%s'%grad)",
    "not_implemented(grad)",
    "not_implemented('a', 'b')",
    "not_implemented('" + "x" * 300 + "')",
    "einsum('i->i'+'j',grad)",
    "sin(grad, mode='a' 'B')",
    # characters
    "\uff47\uff52\uff41\uff44",
    "gr\u0430d",
    "grad\u202e",
    "grad\u200b",
    "grad\x00",
    "grad\x1b[31m",
    "\u00a0grad",
    # not even nearly right
    "unknown",
    "selff",
    "",
    "   ",
    "grad *",
    ")",
    "grad grad",
    "3",
    "null",
    "~",
    "2018-01-01",
    "0o777",
    "1if grad else 2",
]

KEYS = ("forward", "gradient", "tangent")
BEFORE = """
- name: sin(Tensor self) -> Tensor
  forward: lax.sin(self)
  self: grad * self.cos()
  result: auto_element_wise
"""
AFTER = """
- name: cos(Tensor self) -> Tensor
  forward: lax.cos(self)
  self: grad * -self.sin()
  result: auto_element_wise
"""
BAD = """
- name: bad(Tensor self) -> Tensor
  forward: {forward}
  self: {gradient}
  result: {tangent}
"""


def quoted(text):
    """`text` as a double-quoted scalar, in which YAML writes any character."""
    escaped = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{escaped}"'


def refusal(text):
    """The mistakes of a text that must not load, and must take little work."""
    with pytest.raises(TableError) as caught, at_most(MOST_CALLS):
        loads(text, "t.yaml").check()
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.mistakes)  # nothing of the input breaks a line
    assert all(line.isascii() and line.isprintable() for line in lines)
    return caught.value.mistakes


def with_formula(key, formula):
    """A table with a hostile formula under one key of its second entry."""
    sound = {"forward": "lax.sin(self)", "gradient": "grad", "tangent": "self_t"}
    if key != "gradient":
        formula = formula.replace("grad", "self_t" if key == "tangent" else "self")
    return BEFORE + BAD.format(**sound | {key: quoted(formula)}) + AFTER


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: ascii(formula[:40]))
@pytest.mark.parametrize("key", KEYS)
def test_formula(key, formula):
    assert {mistake.entry for mistake in refusal(with_formula(key, formula))} == {"bad"}


def test_what_is_sound_loads():
    formulas = BAD.format(forward='"lax.sin(self)"', gradient="'grad'", tangent="self_t")
    assert len(loads(BEFORE + formulas + AFTER)) == 3


@pytest.mark.parametrize("formula", ["x" * 900, "'" + "\u202e" * 90 + "'", "grad." + "y" * 900])
def test_messages_are_short(formula):
    text = BAD.format(forward="lax.sin(self)", gradient=quoted(formula), tangent="self_t")
    assert all(len(str(mistake)) < 400 for mistake in refusal(text))


# Values of `self`.
VALUES = {
    "apply": "!!python/object/apply:os.system ['x']",
    "name tag": "!!python/name:os.system",
    "module tag": "!!python/module:os",
    "unknown tag": "!mine grad",
    "tag !": "! grad",
    "str tag": "!!str grad",
    "binary": "!!binary Z3JhZA==",
    "set": "!!set {grad}",
    "anchor": "&a grad",
    "self-referring alias": "&a [*a]",
    "list": "[grad]",
    "map": "{grad: grad}",
    "null": "null",
    "nothing": "",
    "number": "3.5",
    "timestamp": "2018-11-01",
    "boolean": "yes",
    "block": "|\n    __import__('os').system('x')\n    import os",
    "folded block": ">\n    __import__('os')\n    .system('x')",
}
# Lines after a sound entry.
LINES = {
    "alias": "result: &a auto\n  other: *a",
    "alias as key": "&a result: auto\n  *a : auto",
    "merge key": "<<: {result: auto}",
    "duplicate key": "self: grad",
    "two names": "name: worse(Tensor self) -> Tensor",
    "no argument": "other: grad",
    "integer key": "1: grad",
    "null key": "~: grad",
    "empty key": ": grad",
    "complex key": "? [a, b]\n  : grad",
    "dunder key": "__class__: grad",
    "code in flags": "output_differentiability: [__import__('os').system('x')]",
    "code for flags": "output_differentiability: __import__('os').system('x')",
    "too many flags": f"output_differentiability: [{'True, ' * 5000}]",
}
NAMES = {
    "no schema": "bad",
    "no schema either": "bad and worse(Tensor self)",
    "half a schema": "bad(Tensor self",
    "unknown type": "bad(Tensr self) -> Tensor",
    "path": "../../bad(Tensor self) -> Tensor",
    "path with a root": "/etc/bad(Tensor self) -> Tensor",
    "namespace": "bad::bad(Tensor self) -> Tensor",
    "dunder": "__bad__(Tensor self) -> Tensor",
    "dunder overload": "bad.__bad__(Tensor self) -> Tensor",
    "dunder argument": "bad(Tensor __class__) -> Tensor",
    "Cyrillic": "b\u0430d(Tensor self) -> Tensor",
    "too many arguments": f"bad({'Tensor a, ' * 5000}Tensor b) -> Tensor",
    "list of names": "[bad(Tensor self)]",
    "empty name": "''",
}
STRUCTURES = {
    "entry is a list": "- [bad]\n",
    "entry is text": "- bad\n",
    "entry is nothing": "-\n",
    "no name": "- self: grad\n",
}
OPENING = "- name: bad(Tensor self) -> Tensor\n  forward: lax.sin(self)\n  self: "
TABLES = (
    {name: f"{OPENING}{value}\n" for name, value in VALUES.items()}
    | {name: f"{OPENING}grad\n  {lines}\n" for name, lines in LINES.items()}
    | {name: f"- name: {schema}\n  self: grad\n" for name, schema in NAMES.items()}
    | STRUCTURES
)


@pytest.mark.parametrize("name", TABLES)
def test_entry(name):
    mistakes = refusal(BEFORE + TABLES[name] + AFTER)
    assert {mistake.line for mistake in mistakes} <= set(range(6, 6 + TABLES[name].count("\n")))
    assert not {mistake.entry for mistake in mistakes} & {"sin", "cos"}


BOMB = "- name: &a0 x\n" + "".join(f"- &a{i} [{f'*a{i - 1}, ' * 10}]\n" for i in range(1, 20))
FILES = {
    "empty": "",
    "blanks": "  \n \n",
    "only a comment": "# nothing\n",
    "scalar": "grad",
    "map": "name: bad(Tensor self)\nself: grad\n",
    "empty list": "[]",
    "alias bomb": BOMB,
    "two documents": BEFORE + "---" + AFTER,
    "directive": "%YAML 1.1\n---" + BEFORE,
    "tag directive": "%TAG !e! tag:example.com,2000:\n---" + BEFORE,
    "unknown directive": "%HELLO there\n---" + BEFORE,
    "tab": BEFORE + "\tself: grad\n",
    "NUL": BEFORE + "\0",
    "bell in a comment": BEFORE + "# \a\n",
    "reversed text in a comment": BEFORE + "# \u202e\n",
    "not UTF-8": BEFORE.encode() + b"# \xff\xfe\n",
    "overlong UTF-8": BEFORE.encode() + b"# \xc0\x80\n",
    "UTF-16": BEFORE.encode("utf-16"),
    "UTF-32": BEFORE.encode("utf-32"),
    "surrogate": BEFORE + "# \ud800\n",
    "2000 brackets": "[" * 2000,
    "2000 closed brackets": "[" * 2000 + "]" * 2000,
    "2000 braces": "- " + "{a: " * 2000,
    "2000 dashes": "- " * 2000 + "a",
    "2000 levels": "".join(" " * i + "-\n" for i in range(1400)),
    "21 levels": "- name: " + "[" * 21 + "]" * 21,
    "700,000 entries": "- a\n" * 700_000,
    "400,000 entries": "- a\n" * 400_000,
    "wide flow list": "[" + "a," * 900_000 + "]",
    "wide map": "- {" + "a: b, " * 300_000 + "}",
    "a key of a megabyte": "- " + "a" * 1_500_000 + ": b\n",
    "a formula of a megabyte": BEFORE + "  other: " + "a" * 1_500_000 + "\n",
    "a schema of a megabyte": "- name: f(" + "a" * 1_500_000 + ")\n",
    "quotes without end": BEFORE + "- name: '" + "a\n " * 300_000,
    "misspelled 3,000 times": "".join(
        f"- name: f{i}(Tensor self) -> Tensor\n  self: grad{i}\n" for i in range(3000)
    ),
    "too large": "# " + "a" * 2_000_000,
}


@pytest.mark.parametrize("name", FILES)
def test_file(name):
    refusal(FILES[name])


def hostile_tables():
    formulas = [with_formula(key, formula) for key in KEYS for formula in FORMULAS]
    return [*formulas, *(BEFORE + text + AFTER for text in TABLES.values()), *FILES.values()]


def test_nothing_runs():
    """Loads all of the above under an audit hook, which sees imports, files and processes."""
    command = [sys.executable, HERE / "load_hostile.py"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    assert result.stdout == f"{len(hostile_tables())} refused\n"
    assert result.stderr == ""


# random damage


def table_text():
    path = SHIPPED if SHIPPED.exists() else HERE / "sample.yaml"
    return path.read_text()


FUNCTIONS, OPERATORS = known_names([])


def stretches(text, length=12):
    """The table cut into tables of a dozen entries."""
    _, *entries = text.split("\n- name:")
    starts = range(0, len(entries), length)
    return [
        ("\n- name:" + "\n- name:".join(entries[start : start + length]) + "\n").encode()
        for start in starts
    ]


def damaged(data, chance):
    """`data` with one to three bytes changed, inserted, left out or repeated."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(data))
        end = start + chance.randint(0, 20)
        byte = bytes([chance.choice([chance.randrange(256), *b"\n :-'\"[]{}(),&*!|>%#"])])
        changes = [byte + data[start + 1 : end], byte + data[start:end], b"", data[start:end] * 2]
        data[start:end] = chance.choice(changes)
    return bytes(data)


def loads_or_is_refused(data, operators):
    """Whether it loads; anything but a TableError, and much work, is a failure."""
    try:
        with at_most(MOST_CALLS):
            loads(data, "t.yaml", FUNCTIONS, operators).check()
    except TableError:
        return False
    return True


def test_mutations():
    """Random damage, of the shipped table where there is one.

    JAXGRAD_MUTATIONS=10000 in the environment makes ten thousand of these instead of 300.
    """
    count = int(os.environ.get("JAXGRAD_MUTATIONS", "300"))
    chance, tables = random.Random(2018), stretches(table_text())
    operators = OPERATORS.union(loads(table_text()).names)
    results = [
        loads_or_is_refused(damaged(chance.choice(tables), chance), operators) for _ in range(count)
    ]
    assert not all(results)


def test_prefixes():
    """A table that was cut off; with JAXGRAD_MUTATIONS at every byte of a stretch, else at some."""
    data = stretches(table_text())[0]
    step = 1 if "JAXGRAD_MUTATIONS" in os.environ else len(data) // 60 + 1
    results = [loads_or_is_refused(data[:end], OPERATORS) for end in range(0, len(data), step)]
    assert not results[0]


def read_whole(data):
    """The entries of a table and its mistakes, by the strict reader."""
    source = decode(data, "t.yaml")
    return reader.read(source), source.mistakes


def read_by_lines(data):
    """The entries of a table and its mistakes, each entry read by itself; None and no mistakes
    where its lines do not show them.
    """
    source, mistakes, entries = decode(data, "t.yaml"), [], []
    late = outline(source)
    if late is None:
        return None, []
    for entry in late:
        try:
            entries.append(entry.read())
        except TableError as error:
            mistakes += error.mistakes
    return entries, mistakes


@pytest.mark.slow
def test_damaged_tables_are_read_alike():
    """A table is refused in both ways or has the same entries."""
    chance, tables = random.Random(2026), stretches(table_text())
    outcomes = []
    for _ in range(400):
        data = damaged(chance.choice(tables), chance)
        entries, mistakes = read_by_lines(data)
        expected, causes = read_whole(data)
        if entries is None:
            outcomes.append("whole")
            continue
        assert bool(mistakes) == bool(causes), data
        assert mistakes or entries == expected, data
        outcomes.append("refused" if mistakes else "read")
    assert set(outcomes) == {"whole", "refused", "read"}
