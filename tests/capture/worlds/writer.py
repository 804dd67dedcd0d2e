"""Writes the source of a random world: its state, a function, its calls, and changes between them.

The lines are run as they are drawn, so that later lines name what is there by then.
"""

import ast
import random
import textwrap
import warnings
from typing import NamedTuple

import jaxgrad

from . import prelude, switches
from .expressions import NUMBER_NAMES, TENSOR_NAMES, Statements
from .observe import SETTINGS
from .places import places


class Program(NamedTuple):
    """The statements that make the world and the function, and those that run afterwards."""

    state: tuple
    body: tuple
    head: tuple
    tail: tuple
    script: tuple

    def setup(self):
        """The statements that make the world and the function `step`."""
        depth = self.head[-1].index("def") // 4 + 1 if self.head else 1
        body = indented_by(depth, self.body)
        return [*self.state, "\n".join([*self.head, *body, *self.tail])]

    def __str__(self):
        return "\n".join([*self.setup(), "", *self.script])


def indented_by(depth, lines):
    return ["    " * depth + line for statement in lines for line in statement.split("\n")]


ARGUMENTS = "x, k=1.0, flag=True, extra=None"


class Writer:
    """Writes one program. `world`: the globals of the world in which its lines have run."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.world, self.state = prelude.namespace("world"), []
        self.names = {}

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, choices):
        return self.random.choice(list(choices))

    def run(self, text):
        exec(text, self.world)

    def add(self, text):
        """Add a statement to those that make the world; one that raises is left out."""
        try:
            self.run(text)
        except Exception:
            return False
        self.state.append(text)
        return True

    def new_name(self, kind):
        number = self.names[kind] = self.names.get(kind, -1) + 1
        return f"{kind}{number}"

    def draws(self, **options):
        return Statements(self.random, places(self.world), **options)

    # ---- the state

    def make_state(self):
        for _ in range(self.random.randint(2, 4)):
            self.add(f"{self.new_name('t')} = {self.new_tensor()}")
        for _ in range(self.random.randint(1, 2)):
            self.add(self.class_text())
        kinds = self.random.choices(
            [
                "instance",
                "container",
                "space",
                "function",
                "closure",
                "module",
                "library",
                "network",
                "optimizer",
                "alias",
                "number",
                "cached",
                "hook",
                "setting",
                "odd",
            ],
            [5, 5, 1, 2, 2, 2, 1, 2, 2, 3, 2, 1, 1, 1, 3],
            k=self.random.randint(4, 8),
        )
        if "views" in switches.on:
            self.add(f"{self.new_name('t')} = t0.detach()[0:1]")
        for kind in kinds:
            getattr(self, f"make_{kind}")()

    def new_tensor(self):
        values = ", ".join(self.random.choices(["0.5", "1.0", "-1.0", "2.0", "0.25"], k=2))
        template = self.pick(["tensor({})", "tensor({})", "leaf({})", "nn.Parameter(tensor({}))"])
        if self.chance(0.1):
            template = template.replace("{}", "{}, dtype=torch.float64")
        return template.format(values)

    def some_value(self, kinds="TTTTNNNSBLDQEUO"):
        """A value of any kind: a place, so that it has two names, or a new one."""
        draws = self.draws(inside=False)
        kind = self.pick(kinds)
        place = draws.place(kind)
        if kind == "T" and (place is None or self.chance(0.5)):
            return self.new_tensor()
        if place is not None and self.chance(0.6):
            return place.expression
        draws.tensors.append(self.new_tensor())
        if kind == "T":
            return place.expression
        if kind == "N":
            return self.pick(["0.5", "1.0", "2", "3"])
        draws.places = [p for p in draws.places if p.kind != "F"]
        draws.calls = []
        text = draws.value(kind)
        return text.replace("(x", f"({self.new_tensor()}") if text else "1.0"

    def method_lines(self, owner):
        """What a method does with the attributes that its class has for all instances."""
        names = self.random.sample([*NUMBER_NAMES, *TENSOR_NAMES], 3)
        lines = []
        for name in names:
            if name in NUMBER_NAMES:
                lines += self.pick(
                    [
                        [f"{owner}.{name} += 1"],
                        [f"{owner}.{name} = {owner}.{name} * 0.5"],
                        [f"x = x * {owner}.{name}"],
                        [f"x = x * {owner}.{name}"],
                        [f"if {owner}.{name} > 1:", f"    x = x + {owner}.{name}"],
                    ]
                )
            else:
                lines += self.pick(
                    [
                        [f"x = x + {owner}.{name}"],
                        [f"x = x * {owner}.{name}"],
                        [f"{owner}.{name} = ({owner}.{name} * 0.5 + x).detach()"],
                        [f"with torch.no_grad(): {owner}.{name}.add_(x.sum().detach())"],
                    ]
                )
        return [*lines, "return x"]

    def class_text(self):
        name = self.new_name("C")
        known = [n for n in self.world if n[0] == "C" and n[1:].isdigit()]
        base = self.pick([*known, "object", "object", "nn.Module"])
        lines = [f"class {name}({base}):"]
        for attribute in TENSOR_NAMES:
            lines.append(f"    {attribute} = {self.new_tensor().replace('nn.Parameter', '')}")
        for attribute in NUMBER_NAMES:
            lines.append(f"    {attribute} = {self.pick(['1.0', '2.0', '0.5', '3'])}")
        if self.chance(0.3):
            lines.append(f"    c = {self.pick(['[1.0, 2.0]', '{}', '{0.5}', '(1.0, 2)'])}")
        lines += ["    def m_a(self, x):", *indented_by(2, self.method_lines("self"))]
        members = [
            ["    @property", "    def p(self):", "        return self.n * 2"],
            [
                "    @property",
                "    def p(self):",
                "        return self.k + 1",
                "    @p.setter",
                "    def p(self, value):",
                "        self.k = value",
            ],
            ["    @property", "    def t_p(self):", "        return self.h * self.n"],
            ["    @functools.cached_property", "    def q(self):", "        return self.n + 1"],
            ["    @functools.cached_property", "    def t_q(self):", "        return self.h * 2"],
            ["    d = Doubled('n')"],
            ["    d = Constant(2.0)"],
            ["    def m_b(self, x):", "        return self.m_a(x) * self.n"],
            ["    @classmethod", "    def m_c(cls, x):", "        return x * cls.n"],
            ["    @staticmethod", "    def m_s(x):", "        return x * 2"],
            [
                "    def __getattr__(self, name):",
                "        if name == 'z':",
                "            return self.n * 3",
                "        raise AttributeError(name)",
            ]
            if "Module" not in base and not known
            else [],
            ["    def m_z(self, x):", "        return x * getattr(self, 'z', 1.0)"],
            ["    def m_q(self, x):", "        return x * getattr(self, 'q', 1.0)"],
            ["    def m_d(self, x):", "        return x * getattr(self, 'd', 1.0)"],
            ["    def m_p(self, x):", "        return x * getattr(self, 'p', 1.0)"],
            ["    def __len__(self):", "        return 2"],
            ["    __slots__ = ('s1', 's2')"] if base == "object" else [],
            [
                "    def __setattr__(self, name, value):",
                "        vars(self)['last'] = name",
                "        super().__setattr__(name, value)",
            ],
            [
                "    def __getattribute__(self, name):",
                "        return super().__getattribute__('w' if name == 'v' else name)",
            ],
            ["    def m_u(self, x):", "        return super().m_a(x) * self.n"]
            if base in known
            else [],
            ["    def m_t(self, x):", "        return x * type(self).n + self.__class__.k"],
            ["    def m_i(self, x):", "        return x * len(vars(self))"],
            [
                "    def m_y(self, x):",
                "        try:",
                "            return x * self.y",
                "        except AttributeError:",
                "            self.y = 2.0",
                "            return x",
            ],
            [
                "    def m_l(self, x):",
                "        if not hasattr(self, 'first'):",
                "            self.first = x.detach()",
                "        return x + self.first",
            ],
        ]
        for member in self.random.sample(members, self.random.randint(1, 6)):
            lines += member
        if base == "nn.Module" or self.chance(0.3):
            lines += ["    def forward(self, x):", *indented_by(2, self.method_lines("self"))]
            if base != "nn.Module":
                lines.append("    __call__ = forward")
        return "\n".join(lines)

    def make_instance(self):
        kind = self.pick([n for n in self.world if n[0] == "C" and n[1:].isdigit()] or ["Space"])
        name = self.new_name("o")
        self.add(f"{name} = {kind}()")
        for attribute in self.random.sample(["h", "w", "n", "k", "c", "s1"], 3):
            kinds = "T" if attribute in "hwv" else "N" if attribute in "nk" else "TNLDQEUSBO"
            self.add(f"{name}.{attribute} = {self.some_value(kinds)}")

    def make_container(self):
        name = self.new_name("c")
        items = [self.some_value() for _ in range(self.random.randint(1, 3))]
        keys = self.random.sample(["'h'", "'n'", "'a'", "'k'"], len(items))
        entries = [
            self.some_value("T" if k == "'h'" else "N" if k in "'n''k'" else "TNLS") for k in keys
        ]
        pairs = ", ".join(f"{key}: {item}" for key, item in zip(keys, entries, strict=True))
        joined = ", ".join(items)
        container = self.pick(
            [
                f"[{joined}]",
                f"[{joined}]",
                f"{{{pairs}}}",
                f"{{{pairs}}}",
                f"({joined},)",
                f"collections.deque([{joined}])",
                f"collections.OrderedDict({{{pairs}}})",
                "{1, 2.0}",
                f"collections.defaultdict(float, {{{pairs}}})",
            ]
        )
        self.add(f"{name} = {container}")

    def make_space(self):
        value = f"Space(h={self.some_value('T')}, n={self.some_value('N')})"
        self.add(f"{self.new_name('o')} = {value}")

    def make_library(self):
        name = self.new_name("lib")
        self.add(f"{name} = types.ModuleType('world.{name}')")
        self.add(f"{name}.n = {self.some_value('N')}")
        self.add(f"{name}.h = {self.some_value('T')}")

    def helper_body(self, draws):
        draws.tensors = ["x"]
        lines = draws.block(1, 0, 2)
        return indented_by(1, [*lines, f"return ({draws.tensor()}) * 0.5 + x"])

    def make_function(self):
        name, draws = self.new_name("fn"), self.draws()
        draws.calls = []
        default = self.some_value("TN")
        outside = [line for line in self.helper_body(draws) if line]
        text = "\n".join([f"def {name}(x, a={default}, k=1.0, flag=True):", *outside])
        names = self.bound_globals(textwrap.dedent("\n".join(outside).replace("return", "pass;")))
        if names:
            text = text.replace("):\n", f"):\n    global {', '.join(names)}\n", 1)
        self.add(text)
        if self.chance(0.2):
            value = self.some_value("TN")
            self.add(f"{self.new_name('fn')} = functools.partial({name}, a={value})")

    def bound_globals(self, text):
        return sorted({n for n in self.world if n not in prelude.NAMES and binds(text, n)})

    def make_closure(self):
        name, maker = self.new_name("fn"), self.new_name("make")
        lines = self.pick(
            [
                ["n += 1", "return x * n"],
                ["h = (h * 0.5 + x).detach()", "return h"],
                ["return x * h + n"],
                ["c.append(n)", "return x * len(c)"],
                ["if n > 1: x = x + h", "n = n * 0.5", "return x"],
                ["c.append(x.detach())", "return sum(part * 0.5 for part in c[-2:])"],
            ]
        )
        text = [
            f"def {maker}(h, n, c):",
            f"    def {name}(x):",
            "        nonlocal h, n, c",
            *indented_by(2, lines),
            f"    return {name}",
        ]
        self.add("\n".join(text))
        values = self.some_value("T"), self.some_value("N"), "[]"
        self.add(f"{name} = {maker}({', '.join(values)})")

    def make_cached(self):
        name, place = self.new_name("fn"), self.draws().place("N")
        value = place.expression if place else "2.0"
        cached = name.replace("fn", "cached")
        self.add(f"@functools.lru_cache\ndef {cached}(k):\n    return k * ({value} + 1)")
        self.add(f"def {name}(x):\n    return x * {cached}(2.0)")

    def make_module(self):
        kinds = [n for n in self.world if n[0] == "C" and n[1:].isdigit()]
        kinds = [n for n in kinds if issubclass(self.world[n], jaxgrad.nn.Module)]
        if not kinds:
            return self.make_network()
        name = self.new_name("net")
        self.add(f"{name} = {self.pick(kinds)}()")
        for _ in range(self.random.randint(1, 3)):
            attribute = self.pick(["h", "w", "v", "sub", "c"])
            value = self.some_value("T")
            way = self.pick(
                [
                    f"{name}.register_buffer({attribute!r}, {value}.detach())",
                    f"{name}.{attribute} = nn.Parameter({value}.detach())",
                    f"{name}.{attribute} = {value}",
                    f"{name}.sub = nn.Linear(2, 2)",
                    f"vars({name})[{attribute!r}] = {value}",
                    f"vars({name})['n'] = {self.some_value('N')}",
                ]
            )
            self.add(way)
        return None

    def make_network(self):
        name = self.new_name("net")
        network = self.pick(
            [
                "nn.Linear(2, 2)",
                "nn.Sequential(nn.Linear(2, 2), nn.Tanh())",
                "nn.Identity()",
                "nn.Sequential(nn.Linear(2, 2, bias=False), nn.Dropout(0.5))",
            ]
        )
        self.add(f"{name} = filled({network})")

    def make_optimizer(self):
        draws = self.draws()
        net = draws.place("M", lambda p: list(p.value.parameters()))
        leaf = draws.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)
        if leaf is None and net is None:
            return
        parameters = f"[{leaf.expression}]" if leaf else f"{net.expression}.parameters()"
        kind = self.pick(
            ["SGD({}, lr=0.1)", "SGD({}, lr=0.1, momentum=0.5)", "Adam({}, lr=0.1, eps=1e-3)"]
        )
        name = self.new_name("opt")
        self.add(f"{name} = torch.optim.{kind.format(parameters)}")
        if self.chance(0.3):
            draws = self.draws()
            hook = self.pick(["pre", "post"])
            self.add(
                f"{name}.register_step_{hook}_hook(lambda o, *_: o.param_groups[0].update("
                f"weight_decay=0.1 * number({draws.number()})))"
            )

    def make_odd(self):
        """State of a class that Python has, and functions that keep something."""
        name, function = self.new_name("g"), self.new_name("fn")
        tensor, number = self.some_value("T"), self.some_value("N")
        self.add(
            self.pick(
                [
                    f"{name} = np.array([1.0, 2.0])",
                    f"{name} = Pair({tensor}, {number})",
                    f"{name} = contextvars.ContextVar('{name}', default=1.0)",
                    f"{name} = Data({tensor}, {number})",
                    f"{name} = Frozen({tensor}, {number})",
                    f"{name} = Missing(h={tensor}, n={number})",
                    f"{name} = collections.Counter(a=2)",
                    f"{name} = Mode.FAST",
                    f"{name} = collections.UserDict(h={tensor}, n={number})",
                    f"{name} = collections.ChainMap({{'h': {tensor}}}, {{'n': {number}}})",
                    f"{name} = types.MappingProxyType({{'h': {tensor}, 'n': {number}}})",
                    f"def {function}(x, log=[]):\n    log.append({number})\n"
                    "    return x * len(log)",
                    f"def {function}(x, *, a={tensor}, n={number}):\n    return x * n + a",
                    f"def {function}(x):\n    {function}.n = getattr({function}, 'n', 0) + 1\n"
                    f"    return x * {function}.n",
                    f"def {function}(x, *, memory={{}}):\n"
                    f"    memory['h'] = (memory.get('h', x) * 0.5).detach()\n"
                    "    return x + memory['h']",
                    f"def {function}(x):\n    for name in ('n', 'k'):\n"
                    f"        x = x * number(getattr({self.holder()}, name, 1.0))\n    return x",
                    f"def {function}(x):\n    for key, part in vars({self.holder()}).items():\n"
                    "        x = x + number(part) * len(key)\n    return x",
                ]
            )
        )

    def holder(self):
        place = self.draws().place("OX")
        return place.expression if place else "Space"

    def make_alias(self):
        place = self.draws().place("TTTLDQEONF")
        if place is not None:
            self.add(f"{self.new_name('g')} = {place.expression}")

    def make_number(self):
        value = self.pick(["0.5", "1.0", "2", "True", "'a'"])
        self.add(f"{self.new_name('n')} = {value}")

    def make_hook(self):
        draws = self.draws()
        draws.calls = []
        leaf = draws.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)
        net = draws.place("M")
        if net is not None and self.chance(0.4):
            ways = "forward_hook(lambda m, i, o: o", "forward_pre_hook(lambda m, i: i[0]"
            way = self.pick(ways)
            self.add(f"{net.expression}.register_{way} * {draws.number()})")
        elif leaf is not None:
            self.add(f"{leaf.expression}.register_hook(lambda g: g * {draws.number()})")

    def make_setting(self):
        self.add(self.draws(inside=False).changed_setting(0)[0])

    # ---- the function

    def make_function_text(self):
        """The body of the function, what comes before it, and what after it."""
        draws = self.draws()
        closed = self.pick([0, 0, 2])
        variables = [draws.place("TNLDO") for _ in range(closed)]
        variables = [place for place in variables if place is not None]
        draws.tensors.append("x")
        for number, place in enumerate(variables):
            draws.places = [
                *draws.places,
                *[place._replace(expression=f"u{number}", holder="g")] * 3,
            ]
            draws.favourites.add(f"u{number}")
        lines = [*draws.block(0, 3, 8), f"return {self.result(draws)}"]
        text = "\n".join(lines)
        names = self.bound_globals(text)
        outer = [f"u{number}" for number in range(len(variables))]
        if names:
            lines.insert(0, f"global {', '.join(names)}")
        if variables:
            if any(binds(text, name) for name in outer):
                lines.insert(0, f"nonlocal {', '.join(outer)}")
            values = ", ".join(place.expression for place in variables)
            head = [f"def enclosing({', '.join(outer)}):", f"    def step({ARGUMENTS}):"]
            return lines, head, ["    return step", f"step = enclosing({values})"]
        if self.chance(0.2):
            base = self.pick(["object", "nn.Module"])
            name = "forward" if base == "nn.Module" else "step"
            head = [f"class Trainer({base}):", f"    def {name}(self, {ARGUMENTS}):"]
            tail = "step = trainer" + (".step" if base == "object" else "")
            return lines, head, ["trainer = Trainer()", tail]
        return lines, [f"def step({ARGUMENTS}):"], []

    def result(self, draws):
        parts = [draws.tensor() for _ in range(self.random.randint(1, 3))]
        parts[-1] = self.pick([parts[-1], *draws.tensors])
        if self.chance(0.3):
            parts.append(draws.number())
        if self.chance(0.2):
            place = draws.place("LDOQ")
            parts += [place.expression] if place else []
        joined = ", ".join(parts)
        pairs = ", ".join(f"{name!r}: {part}" for name, part in zip("abcde", parts, strict=False))
        keywords = ", ".join(f"{name}={part}" for name, part in zip("abcde", parts, strict=False))
        return self.pick(
            [
                parts[0],
                parts[-1],
                f"({joined})",
                f"[{joined}]",
                f"{{{pairs}}}",
                f"Space({keywords})",
                f"collections.OrderedDict({{{pairs}}})",
                f"collections.deque([{joined}])",
                f"({parts[0]}, [{joined}])",
                f"functools.partial(first, {joined})",
                "None",
            ]
        )

    # ---- calls, and changes between them

    def make_script(self, text):
        """text: the body of the function, whose places are rather changed."""
        script = []
        numbers = self.pick([["1.0"], ["1.0"], ["2"], ["0.5", "1.0", "2.0"], ["1", "2"]])
        call = self.call(numbers)
        for number in range(self.random.randint(4, 7)):
            line = f"out{number} = {call}"
            script.append(line)
            self.attempt(line)
            if "dependent results" in switches.on and self.chance(0.5):
                script.append(f"gradients = between(out{number})")
                self.attempt(script[-1])
            if "second derivatives" in switches.on and self.chance(0.5):
                script += self.slopes(number)
            if self.chance(0.25):
                script.append(f"total(out{self.random.randint(0, number)}).backward()")
                self.attempt(script[-1])
            for _ in range(self.pick([0, 1, 1, 2])):
                script += self.change(text)
            if self.chance(0.3):
                call = self.call(numbers)
        return script

    def slopes(self, number):
        """Lines that take gradients of a result, and change state before those of the gradients."""
        draws = self.draws(inside=False)
        places = [draws.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)]
        places += [draws.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)]
        leaves = ", ".join({place.expression: None for place in places if place is not None})
        if not leaves:
            return []
        lines = [f"slopes = slope(out{number}, [{leaves}])"]
        self.attempt(lines[0])
        lines += self.change("")
        lines.append(f"curves = slope(slopes, [{leaves}])")
        self.attempt(lines[-1])
        return lines

    def attempt(self, line):
        try:
            self.run(line)
        except Exception:
            return False
        return True

    def call(self, numbers):
        draws = self.draws(inside=False)
        place = draws.place("T", lambda p: p.value.shape == (2,))
        x = place.expression if place is not None and self.chance(0.2) else self.new_tensor()
        parts = [x]
        if self.chance(0.6):
            parts.append(self.pick(numbers))
        if self.chance(0.2):
            parts.append(f"flag={self.pick(['True', 'False'])}")
        if "lists" in switches.on and self.chance(0.5):
            parts.append("extra=[tensor(1.0, 2.0)]")
        return f"step({', '.join(parts)})"

    def change(self, body):
        """Changes from outside that can be made now."""
        for _ in range(4):
            draws = self.draws(inside=False, text=body)
            draws.tensors.append(self.new_tensor())
            is_replacement = self.chance(0.3)
            lines = self.replacement(draws) if is_replacement else draws.statement()
            text = "\n".join(lines or ["pass"]).replace("(x", f"({self.new_tensor()}")
            if lines and self.attempt(text):
                return [text]
        return []

    def replacement(self, draws):
        """Changes of code, classes and hooks."""
        one, other = draws.place("F"), draws.place("F")
        instance, kind = draws.place("O"), draws.place("C")
        leaf = draws.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)
        net = draws.place("M")
        choices = []
        if one is not None and hasattr(one.value, "__code__"):
            if hasattr(other.value, "__code__"):
                choices.append(f"{one.expression}.__code__ = {other.expression}.__code__")
            choices.append(f"{one.expression}.__defaults__ = {self.defaults(one.value, draws)}")
        if instance is not None and kind is not None:
            choices.append(f"{instance.expression}.__class__ = {kind.expression}")
        if kind is not None:
            choices.append(f"{kind.expression}.m_a = lambda self, x: x * {draws.pick('23')}")
            choices.append(f"{kind.expression}.p = property(lambda self: {draws.pick('23')}.0)")
            choices.append(f"{kind.expression}.q = {draws.pick('23')}.0")
            choices.append(f"{kind.expression}.d = Constant({draws.pick('23')}.0)")
        if instance is not None:
            choices.append(f"{instance.expression}.m_a = lambda x: x * {draws.pick('23')}")
            choices.append(f"vars({instance.expression})['q'] = {draws.pick('23')}.0")
        if leaf is not None:
            choices.append(f"{leaf.expression}.register_hook(lambda g: g * {draws.pick('23')})")
        if net is not None:
            hook = f"lambda m, i, o: o * {draws.pick('23')}"
            choices.append(f"{net.expression}.register_forward_hook({hook})")
            choices.append(f"{net.expression}.forward = lambda x: x * {draws.pick('23')}")
        return [draws.pick(choices)] if choices else None

    def defaults(self, function, draws):
        count = len(function.__defaults__ or ())
        return f"({''.join(draws.number() + ', ' for _ in range(count))})" if count else "None"


def binds(text, name):
    """Whether code binds a name by itself, and not an attribute or an item of it."""
    names = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
    return any(node.id == name and not isinstance(node.ctx, ast.Load) for node in names)


def put_settings(values):
    for name, (read, put) in SETTINGS.items():
        if read() != values[name]:
            put(values[name])


def get_settings():
    return {name: read() for name, (read, _) in SETTINGS.items()}


MOST_TRIES = 6


def write(seed) -> Program:
    """The program of a seed. Most of its calls raise nothing uncompiled."""
    settings = get_settings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _written(seed)
        finally:
            put_settings(settings)


def _written(seed):
    for number in range(MOST_TRIES):
        writer = Writer(f"{seed} {number}")
        writer.make_state()
        lines, head, tail = writer.make_function_text()
        before = Program(tuple(writer.state), tuple(lines), tuple(head), tuple(tail), ())
        if not writer.attempt(before.setup()[-1]):
            continue
        script = writer.make_script("\n".join(lines))
        program = before._replace(script=tuple(script), body=tuple(joined(lines)))
        if "out0" in writer.world or number == MOST_TRIES - 1:
            return program
    return program


def joined(lines):
    """Statements, with the lines of each block together."""
    statements = []
    for line in lines:
        inner = line.startswith((" ", "else", "except", "elif", "finally"))
        if inner and statements:
            statements[-1] += "\n" + line
        else:
            statements.append(line)
    return statements
