"""Random expressions and statements of Python over the places of a world."""

import types

from . import switches

NUMBERS = ("0.5", "1.5", "2.0", "-1.0", "3", "2", "1")
WORDS = ("'a'", "'b'", "'c'")
# few names, so that instances, classes, modules and dicts have them in common
TENSOR_NAMES = ("h", "w", "v")
NUMBER_NAMES = ("n", "k")


class Expressions:
    """Draws expressions. `places`: what they may name; `tensors` and `numbers`: the variables that
    are bound so far; `calls`: texts of calls that give a tensor, with `{}` for the argument; text:
    other code, whose places they rather name.
    """

    def __init__(self, random, places, tensors=(), numbers=(), text=""):
        self.random, self.places = random, places
        self.tensors, self.numbers = list(tensors), list(numbers)
        self.calls = [text for place in places if place.kind in "MFO" for text in calls_of(place)]
        # few of these, so that statements meet at the same places
        self.favourites = set(random.sample([p.expression for p in places], min(14, len(places))))
        if text:
            self.favourites = {p.expression for p in places if p.expression in text}

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, choices):
        return self.random.choice(list(choices))

    def weighted(self, *choices):
        """One of (weight, value)."""
        weights, values = zip(*choices, strict=True)
        return self.random.choices(values, weights)[0]

    def place(self, kinds, condition=lambda place: True):
        """A place that holds a value of one of these kinds, or None."""
        fitting = [p for p in self.places if p.kind in kinds]
        favourite = [p for p in fitting if p.expression in self.favourites]
        for candidates in (favourite, fitting) if self.chance(0.8) else (fitting,):
            candidates = [p for p in candidates if condition(p)]
            if candidates:
                return self.random.choice(candidates)
        return None

    # ---- expressions

    def number(self, depth=0):
        place = self.place("N")
        if depth > 1 or self.chance(0.3) or place is None:
            return self.pick([*NUMBERS, *self.numbers])
        return self.weighted(
            (8, lambda: place.expression),
            (2, lambda: f"({place.expression} * {self.number(depth + 1)})"),
            (2, lambda: f"({place.expression} + {self.number(depth + 1)})"),
            (2, lambda: self.absent_number()),
            (1, lambda: self.counted()),
            (1, lambda: self.odd_number()),
            (1, lambda: f"(2.0 if {self.condition(depth + 1)} else {self.number(depth + 1)})"),
        )()

    def absent_number(self):
        """What may be absent, with what it is then."""
        name, place = self.pick(NUMBER_NAMES), self.place("OMXD")
        if place is None:
            return "1.0"
        owner = place.expression
        if place.kind == "D":
            return f"number({owner}.get({name!r}, 2.0))"
        return f"number(getattr({owner}, {name!r}, 2.0))"

    def odd_number(self):
        """A number that is read in a way of its own."""
        array, variable, holder = self.place("A"), self.place("V"), self.place("OX")
        choices = ["Mode.FAST.value", "1.0"]
        if array is not None:
            choices += [f"float({array.expression}[0])", f"float({array.expression}.sum())"] * 2
        if variable is not None:
            choices += [f"{variable.expression}.get()"] * 4
        if holder is not None:
            name = self.pick(NUMBER_NAMES)
            owner = holder.expression
            if hasattr(holder.value, name):
                choices += [f"number(operator.attrgetter({name!r})({owner}))"] * 2
            choices += [f"sum(number(part) for part in vars({owner}).values())"]
            choices += (
                [f"number(weakref.ref({owner})().{name})"]
                if hasattr(holder.value, name)
                and holder.kind == "O"
                and hasattr(holder.value, "__weakref__")
                else []
            )
        return self.pick(choices)

    def counted(self):
        place = self.place("LDQEU")
        return "1.0" if place is None else f"len({place.expression})"

    def condition(self, depth=0):
        one, other = self.place("BNSOLDQET"), self.place("OTLDSN")
        container = self.place("LDQE")
        holder = self.place("OMX")
        name = self.pick(TENSOR_NAMES + NUMBER_NAMES)
        choices = [(1, "flag"), (1, "k > 1"), (1, "torch.is_grad_enabled()"), (2, self.setting())]
        if one and other and one.kind != "N":
            choices.append((2, f"{one.expression} is {other.expression}"))
        if self.place("N"):
            choices.append((2, f"{self.place('N').expression} > {self.pick(NUMBERS)}"))
        if self.place("B"):
            choices.append((2, self.place("B").expression))
        if self.place("S"):
            choices.append((2, f"{self.place('S').expression} == {self.pick(WORDS)}"))
        if container:
            choices.append((1, f"len({container.expression}) > {self.pick('1234')}"))
            choices.append((1, f"not {container.expression}"))
        kind = self.place("C")
        if one and kind:
            choices.append((2, f"isinstance({one.expression}, {kind.expression})"))
        if self.place("DE"):
            key = self.pick(["'n'", "'h'", "'k'", *WORDS])
            choices.append((2, f"{key} in {self.place('DE').expression}"))
        if holder:
            choices.append((2, f"hasattr({holder.expression}, {name!r})"))
            if holder.kind != "X":
                choices.append((1, f"{name!r} in vars({holder.expression})"))
        text = self.weighted(*choices)
        return f"not ({text})" if self.chance(0.2) else text

    def setting(self):
        return self.pick(
            [
                "torch.get_default_dtype() is torch.float64",
                "torch.get_autocast_dtype('cpu') is torch.float16",
                "torch.backends.cudnn.benchmark",
                "torch.backends.opt_einsum.strategy == 'greedy'",
                "torch.is_anomaly_enabled()",
                "torch.get_num_threads() == 5",
                "torch.is_warn_always_enabled()",
            ]
        )

    def tensor(self, depth=0):
        place = self.place("T", is_small)
        if place is None or depth > 2 or self.chance(0.3):
            return self.pick([*self.tensors, "x"])
        inner = place.expression
        choices = [
            (7, lambda: inner),
            (3, lambda: f"({inner} * {self.number(depth + 1)})"),
            (3, lambda: f"({inner} + {self.tensor(depth + 1)})"),
            (2, lambda: f"({inner} * {self.tensor(depth + 1)})"),
            (1, lambda: f"{self.tensor(depth + 1)}.tanh()"),
            (1, lambda: f"{self.tensor(depth + 1)}.detach()"),
            (1, lambda: f"{self.tensor(depth + 1)}.clone()"),
            (1, lambda: f"Scaled.apply({self.tensor(depth + 1)})"),
            (1, lambda: f"torch.stack([{inner}, {inner}]).sum(0)"),
            (1, lambda: f"torch.as_tensor({self.number(depth + 1)})"),
            (1, lambda: f"(torch.tensor([1, 3]) / 2 + {inner})"),
            (1, lambda: self.absent_tensor(inner)),
            (1, lambda: f"{inner}.reshape(-1)[0:1]"),
            (1, lambda: f"(lambda part: part * {self.number(depth + 1)})({inner})"),
            (1, lambda: f"sum([part * {self.number(depth + 1)} for part in ({inner}, x)])"),
        ]
        if self.calls and depth < 2:
            choices.append((6, lambda: self.pick(self.calls).format(self.tensor(depth + 1))))
        return self.weighted(*choices)()

    def absent_tensor(self, default):
        name, place = self.pick(TENSOR_NAMES), self.place("OMXD")
        if place is None:
            return default
        get = ".get(" if place.kind == "D" else None
        owner = place.expression
        return (
            f"{owner}{get}{name!r}, {default})"
            if get
            else (f"getattr({owner}, {name!r}, {default})")
        )

    def value(self, kind, depth=0):
        """An expression of a value of a kind, or None: a place, or a new one."""
        if kind == "T":
            text = self.tensor()
            return f"{text}.detach()" if self.chance(0.5) else text
        if kind == "N":
            return self.number()
        if kind == "B":
            place = self.place("B")
            return self.pick(["True", "False"] + ([f"not {place.expression}"] if place else []))
        if kind == "S":
            return self.pick(WORDS)
        place = self.place(kind)
        if place is not None and (self.chance(0.5) or kind not in "LDQEUOF"):
            return place.expression
        return self.new(kind, depth)

    def new(self, kind, depth=0):
        """An expression of a new object of a kind, or None."""
        item = self.pick("TNNS" if depth < 2 else "N")
        part, other = (self.value(item, depth + 1) for _ in range(2))
        if kind == "L":
            return f"[{part}, {other}]"
        if kind == "U":
            return f"({part}, {other})"
        if kind == "Q":
            return f"collections.deque([{part}, {other}], maxlen={self.pick(['2', '3', 'None'])})"
        if kind == "E":
            return "{" + f"{self.pick(WORDS)}, {self.pick(NUMBERS)}" + "}"
        if kind == "D":
            text = f"{{'h': {self.value('T')}, 'n': {self.number()}}}"
            if place := self.place("D"):
                text = self.pick([text, f"dict({place.expression})"])
            return self.pick([text, text, f"collections.OrderedDict({text})", f"Missing({text})"])
        if kind == "O":
            place = self.place("C", lambda p: p.value.__module__.startswith("world"))
            if place is not None and "Module" not in [c.__name__ for c in place.value.__mro__]:
                return f"{place.expression}()"
            held = self.place("O")
            if held is not None and self.chance(0.3):
                return f"copy.copy({held.expression})"
            name = self.pick(["Space", "Space", "Data", "Frozen"])
            return f"{name}(h={self.value('T')}, n={self.number()})"
        if kind == "F":
            return f"lambda part: part * {self.number()} + {self.tensor()}"
        return None


def calls_of(place):
    """The calls of a place that take a tensor and give one."""
    if place.kind == "M":
        return [f"{place.expression}({{}})"] * 2
    if place.kind == "F":
        return [f"{place.expression}({{}})"]
    if place.kind == "O":
        methods = [n for n in dir(type(place.value)) if n.startswith("m_")]
        tensors = [n for n in dir(type(place.value)) if n.startswith("t_")]
        return [f"{place.expression}.{n}({{}})" for n in methods] + [
            f"({place.expression}.{n} + {{}})" for n in tensors
        ]
    return []


def is_leaf(place):
    return place.value.is_leaf and place.value.is_floating_point()


def is_small(place):
    return place.value.dim() < 2 and place.value.numel() <= 2


class Statements(Expressions):
    """Draws statements. inside: whether they stand in the function, and not between its calls."""

    def __init__(self, *args, inside=True, **options):
        super().__init__(*args, **options)
        self.inside, self.count = inside, 0

    def block(self, depth, least=1, most=3):
        """Lines, whose variables end with the block."""
        known = len(self.tensors), len(self.numbers)
        lines = []
        for _ in range(self.random.randint(least, most)):
            lines += self.statement(depth)
        if depth:
            del self.tensors[known[0] :], self.numbers[known[1] :]
        return lines or ["pass"]

    def statement(self, depth=0):
        while True:
            draw = self.weighted(
                (5 if self.inside else 0, self.local),
                (6 if self.inside else 9, self.rebinding),
                (2 if self.inside else 6, self.addition),
                (2 if self.inside else 4, self.deletion),
                (4, self.in_place),
                (3 if self.inside else 5, self.mutation),
                (2, self.exchange),
                (3, self.counting),
                (2 if self.inside else 1, self.gradients),
                (1, self.optimizing),
                (1, self.lasting),
                (3, self.odd),
                (1 if self.inside else 2, self.changed_setting),
                (3 if depth < 2 else 0, self.branch),
                (1 if depth < 2 else 0, self.loop),
                (1 if depth < 2 else 0, self.mode),
                (1 if depth < 2 else 0, self.attempt),
                (1 if depth == 0 else 0, self.inner_function),
                (1 if depth < 2 else 0, self.held),
            )
            lines = draw(depth)
            if lines:
                return lines

    def local(self, depth):
        if not self.inside:
            return None
        self.count += 1
        if self.chance(0.25):
            text = f"n{self.count} = {self.number()}"
            self.numbers.append(f"n{self.count}")
            return [text]
        text = f"y{self.count} = {self.tensor()}"
        self.tensors.append(f"y{self.count}")
        return [text]

    def rebinding(self, depth):
        place = self.place("TTTTNNBSLDQEUOMF", is_assignable)
        if place is None:
            return None
        value = self.value(place.kind)
        return value and [f"{place.expression} = {value}"]

    def addition(self, depth):
        """A name that appears where there was none, or that hides one of the class."""
        place = self.place("OMXDC")
        name, kind = self.weighted(*[(1, (n, "T")) for n in "hwv"], *[(1, (n, "N")) for n in "nk"])
        if place is None:
            return None
        owner, value = place.expression, self.value(kind)
        if place.kind == "D":
            return [f"{owner}[{name!r}] = {value}"]
        return [f"{owner}.{name} = {value}"]

    def deletion(self, depth):
        place = self.place("TNSBLDO", lambda p: is_assignable(p) and p.holder == "a")
        entry = self.place("TNSB", lambda p: p.holder == "i" and isinstance(p.key, str))
        if entry is not None and self.chance(0.5):
            return [f"{entry.owner}.pop({entry.key!r}, None)"]
        if place is None:
            return None
        name = place.expression.rpartition(".")[2]
        if self.chance(0.2):
            return [f"del {place.expression}"]
        if self.chance(0.3):
            return [f"vars({place.owner}).pop({name!r}, None)"]
        return [f"if {name!r} in vars({place.owner}):", f"    del {place.expression}"]

    def in_place(self, depth):
        place = self.place("T", is_small)
        if place is None:
            return None
        target, factor = place.expression, self.pick(["0.5", "2.0", "-1.0"])
        if self.inside and self.tensors and self.chance(0.3):
            target = self.pick(self.tensors)
        term = f"{self.tensor()}.sum().detach()"
        line = self.pick(
            [
                f"{target}.mul_({factor})",
                f"{target}.add_({term})",
                f"{target}.copy_({term})",
                f"{target}.zero_()",
                f"{target}.data.mul_({factor})",
                f"{target}[...] = {term}",
                f"{target}.detach().add_({self.number()})",
            ]
        )
        return ["with torch.no_grad():", f"    {line}"]

    def mutation(self, depth):
        place = self.place("LDQE")
        if place is None:
            return None
        owner, kind = place.expression, place.kind
        item = self.value(self.pick("TTNS"))
        if kind == "D":
            key = self.pick(["'h'", "'n'", "'a'", "'k'"])
            item = self.value("T" if key == "'h'" else "N")
            return [
                self.pick(
                    [
                        f"{owner}[{key}] = {item}",
                        f"{owner}.update({{{key}: {item}}})",
                        f"{owner}.setdefault({key}, {item})",
                        f"{owner}.pop({key}, None)",
                        f"{owner}[{key}] = {owner}.get({key}, {item})",
                        f"{owner}.clear()",
                    ]
                )
            ]
        if kind == "E":
            word = self.pick([*WORDS, *NUMBERS])
            return [f"{owner}.{self.pick(['add', 'add', 'discard'])}({word})"]
        ways = [f"{owner}.append({item})"] * 3 + [f"{owner}.insert(0, {item})"]
        ways += [f"{owner}.extend([{item}, {item}])", f"{owner}.reverse()"]
        ways += [f"if len({owner}) > 1: {owner}.pop()", f"if len({owner}) > 3: {owner}.clear()"]
        if kind == "Q":
            ways += [f"{owner}.rotate(1)", f"{owner}.appendleft({item})"] * 2
        else:
            ways += [f"{owner}[:] = {owner}[1:] + {owner}[:1]", f"{owner} += [{item}]"]
        return [self.pick(ways)]

    def exchange(self, depth):
        kind = self.pick("TTTNLDO")
        one, other = self.place(kind, is_assignable), self.place(kind, is_assignable)
        if one is None or one.expression == other.expression:
            return None
        return [f"{one.expression}, {other.expression} = {other.expression}, {one.expression}"]

    def odd(self, depth):
        """Changes in ways of their own."""
        array, variable, holder = self.place("A"), self.place("V"), self.place("OX")
        leaf, tensor = self.place("T", is_leaf), self.place("T", is_small)
        function = self.place("F", lambda p: hasattr(p.value, "__dict__"))
        choices = self.switched(tensor) if self.inside else []
        if array is not None:
            choices.append(f"{array.expression}[0] = {self.pick(NUMBERS)}")
            choices.append(f"{array.expression} *= 0.5" if array.holder in "gai" else "pass")
        if variable is not None:
            choices.append(f"{variable.expression}.set({self.number()})")
        if function is not None and not isinstance(function.value, types.MethodType):
            choices.append(f"{function.expression}.n = {self.number()}")
        if holder is not None:
            name = self.pick(TENSOR_NAMES)
            choices.append(f"setattr({holder.expression}, {name!r}, {self.value('T')})")
            is_frozen = type(holder.value).__name__ == "Frozen"
            if hasattr(holder.value, "__dict__") and not is_frozen and self.chance(0.5):
                choices.append(f"vars({holder.expression}).update({name}={self.value('T')})")
        if tensor is not None:
            choices.append(f"{tensor.expression}.n = {self.number()}")
        if leaf is not None:
            shape = "torch.ones_like" if self.chance(0.5) else "torch.zeros_like"
            choices.append(f"{leaf.expression}.grad = {shape}({leaf.expression})")
            if tuple(leaf.value.shape) == (2,):
                choices.append(f"{leaf.expression}.data = {leaf.expression}.data * 0.5")
        return self.pick(choices).split("\n") if choices else None

    def switched(self, tensor):
        """Statements of kinds that are switched on."""
        choices = []
        if "seeding" in switches.on:
            choices += ["torch.manual_seed(3)"] * 3
        if "lists" in switches.on:
            choices += ["if extra is not None: extra.append(x)"] * 3
        if "shapes" in switches.on and tensor is not None:
            choices += [f"{tensor.expression}.unsqueeze_(0)"] * 3
        if "draws" in switches.on:
            choices += ["x = x * random.random()"] * 3
        if "optimizers" in switches.on:
            optimizer = "torch.optim.SGD([x.clone().requires_grad_()], lr=0.1, momentum=0.5)"
            choices += [
                f"made = {optimizer}\ntotal(made.param_groups[0]['params']).backward()\nmade.step()"
            ]
        return choices

    def counting(self, depth):
        place = self.place("N", is_assignable)
        if place is None:
            return None
        sign = self.pick(["+=", "-=", "*="])
        number = self.pick([*NUMBERS, "k"] if self.inside else NUMBERS)
        return [f"{place.expression} {sign} {number}"]

    def gradients(self, depth):
        leaf = self.place("T", lambda p: p.value.is_leaf and p.value.requires_grad)
        if leaf is None:
            return None
        loss = f"({self.tensor()} * {leaf.expression}).tanh().sum()"
        if not self.inside:
            return [f"{leaf.expression}.grad = None"]
        name = f"y{self.count + 1}"
        lines = self.pick(
            [
                [f"{loss}.backward()"],
                [f"{leaf.expression}.grad = None", f"{loss}.backward()"],
                [f"{leaf.expression}.grad = None"],
                [f"if {leaf.expression}.grad is not None:", f"    {leaf.expression}.grad.zero_()"],
                [f"{name} = torch.autograd.grad({loss}, {leaf.expression})[0]"],
                [f"{name} = torch.autograd.grad({loss}, {leaf.expression}, create_graph=True)[0]"],
                [
                    f"{name} = {self.tensor()} * {leaf.expression}",
                    f"{name}.register_hook(lambda g: g * {self.number()})",
                    f"{name}.sum().backward()",
                ],
            ]
        )
        if lines[0].startswith(f"{name} ="):
            self.count += 1
            self.tensors.append(name)
        return lines

    def optimizing(self, depth):
        place = self.place("P")
        if place is None:
            return None
        name = place.expression
        loss = f"total([p * x.sum().detach() for p in {name}.param_groups[0]['params']])"
        step = [f"{name}.zero_grad()", f"{loss}.backward()", f"{name}.step()"]
        rate = [f"{name}.param_groups[0]['lr'] = {self.pick(['0.1', '0.5'])}"]
        fading = [f"{name}.param_groups[0]['lr'] *= 0.5"]
        return self.pick([step, step, step, rate, fading] if self.inside else [rate, fading])

    def lasting(self, depth):
        """Changes of modules, and of flags of tensors."""
        place = self.place("M")
        leaf = self.place("T", lambda p: p.value.is_leaf)
        if place is not None and self.chance(0.5):
            return [f"{place.expression}.{self.pick(['train()', 'eval()', 'zero_grad()'])}"]
        if leaf is None or self.inside:
            return None
        return [f"{leaf.expression}.requires_grad_({self.pick(['True', 'False'])})"]

    def changed_setting(self, depth):
        if self.inside and self.chance(0.7):
            return None
        return [
            self.pick(
                [
                    "torch.set_default_dtype(torch.float64)",
                    "torch.set_default_dtype(torch.float32)",
                    "torch.set_autocast_dtype('cpu', torch.float16)",
                    "torch.backends.cudnn.benchmark = True",
                    "torch.backends.opt_einsum.strategy = 'greedy'",
                    "torch.autograd.set_detect_anomaly(True)",
                    "torch.set_num_threads(5)",
                    "torch.set_warn_always(True)",
                    "torch.set_num_threads(3)" if self.inside else "torch.set_grad_enabled(False)",
                ]
            )
        ]

    def branch(self, depth):
        lines = [f"if {self.condition()}:", *indented(self.block(depth + 1))]
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(depth + 1))]
        return lines

    def loop(self, depth):
        self.count += 1
        name, place = f"n{self.count}", self.place("LDQU")
        over = f"range({self.pick('123')})"
        if place is not None and self.chance(0.6):
            what = f"{place.expression}.values()" if place.kind == "D" else place.expression
            over = f"[number(part) for part in {what}]"
        self.numbers.append(name)
        lines = [f"for {name} in {over}:", *indented(self.block(depth + 1, most=2))]
        self.numbers.remove(name)
        if self.inside and self.chance(0.2):
            lines.insert(1, f"    if {name} > 2: break")
        return lines

    def inner_function(self, depth):
        """A function that is defined inside, and perhaps kept."""
        if not self.inside:
            return None
        self.count += 1
        name, captured = f"inner{self.count}", self.pick([*self.tensors, "x"])
        lines = [f"def {name}(part, factor={self.number()}):"]
        lines += [f"    return part * factor + {captured} * {self.number()}"]
        self.calls.append(f"{name}({{}})")
        holder = self.place("OX")
        if holder is not None and self.chance(0.4):
            lines.append(f"{holder.expression}.f = {name}")
        return lines

    def held(self, depth):
        """A block in which an attribute has another value."""
        place = self.place("N", lambda p: p.holder in "ac" and p.owner)
        if place is None or not self.inside:
            return None
        manager = f"Held({place.owner}, {place.key!r}, {self.number()})"
        return [f"with {manager}:", *indented(self.block(depth + 1))]

    def mode(self, depth):
        if not self.inside:
            return None
        if self.chance(0.3):
            self.count += 1
            name = f"y{self.count}"
            source = self.tensor()
            self.tensors.append(name)
            product = f"{source}.sum().reshape(1, 1) @ torch.ones(1, 1)"
            return [
                "with torch.autocast('cpu'):",
                f"    {name} = {product}",
                f"{name} = {name}.reshape(1)",
            ]
        modes = "torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(flag)"
        mode = self.pick(modes)
        return [f"with {mode}:", *indented(self.block(depth + 1))]

    def attempt(self, depth):
        place = self.place("OMXD")
        if place is None:
            return None
        name = self.pick(TENSOR_NAMES)
        target = "x" if not self.tensors else self.pick(self.tensors)
        if not self.inside:
            return None
        text = f"[{name!r}]" if place.kind == "D" else f".{name}"
        return [
            "try:",
            f"    {target} = {target} + {place.expression}{text}",
            "except (AttributeError, KeyError):",
            f"    {target} = {target} * 2",
        ]


def is_assignable(place):
    if place.key == "grad":
        return False
    if place.holder == "a" and place.kind == "T" and place.value.is_leaf:
        return type(place.value).__name__ != "Parameter"
    return place.holder in "gaic"


def indented(lines):
    return ["    " + line for line in lines]
