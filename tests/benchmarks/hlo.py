"""What the HLO text of a program says: its products, and what its devices send each other."""

import itertools
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

BITS = {
    **{"pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32},
    **{"s64": 64, "u64": 64, "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "token": 0},
}
COLLECTIVES = (
    *("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"),
    *("ragged-all-to-all", "collective-broadcast"),
)
# instructions that only give an array another form
FORMS = ("reshape", "bitcast", "convert", "copy", "transpose")
# how often a computation runs that an instruction names so; those not named here have no products
RUNS = ("calls", "to_apply", "body", "true_computation", "false_computation")

ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
NAME = re.compile(r"%([\w.\-]+)")
HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")


@dataclass
class Instruction:
    """One line. arrays: dtype and extents of each array of the result; options: what follows the
    operands.
    """

    name: str
    arrays: list
    kind: str
    operands: list
    options: str
    literal: str

    @property
    def bytes(self) -> int:
        return sum(math.prod(extents) * BITS[dtype] // 8 for dtype, extents in self.arrays)

    def numbers(self, option: str) -> list[int]:
        match = re.search(rf"\b{option}={{([\d,]*)}}", self.options)
        return [int(number) for number in match[1].split(",") if number] if match else []


def _closing(text: str, start: int) -> int:
    """The place after the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place + 1
    raise ValueError(f"no closing parenthesis in {text[start : start + 80]!r}")


def arrays_of(text: str) -> list:
    return [
        (dtype, tuple(int(extent) for extent in extents.split(",") if extent))
        for dtype, extents in ARRAY.findall(text)
    ]


def instruction(name: str, text: str) -> Instruction:
    """An instruction, of what follows its `name = `."""
    end = _closing(text, 0) if text[0] == "(" else text.index(" ")
    opening = text.index("(", end)
    closing = _closing(text, opening)
    operands = text[opening + 1 : closing - 1]
    options = text[closing:]
    kind = text[end:opening].strip()
    return Instruction(name, arrays_of(text[:end]), kind, NAME.findall(operands), options, operands)


class Module:
    """The computations of a program, each by name a dict of instructions by name."""

    def __init__(self, text: str):
        self.computations, self.entry, current = {}, None, None
        for line in text.splitlines():
            head = HEAD.match(line)
            if head and not line.startswith("HloModule"):
                current = self.computations[head[2]] = {}
                self.entry = head[2] if head[1] else self.entry
            elif current is not None and (match := LINE.match(line)):
                current[match[2]] = instruction(match[2], match[3])
        self.times = Counter()
        self._run(self.entry, 1)

    def _run(self, name: str, times: int):
        """Count how often each computation runs."""
        self.times[name] += times
        for instruction in self.computations[name].values():
            inner = times * self.trips(instruction) if instruction.kind == "while" else times
            for option in RUNS if instruction.kind not in COLLECTIVES else ():
                for called in re.findall(rf"\b{option}=%?([\w.\-]+)", instruction.options):
                    self._run(called, inner)
            branches = re.search(r"branch_computations={([^}]*)}", instruction.options)
            for called in NAME.findall(branches[1]) if branches else ():
                self._run(called, times)

    def trips(self, loop: Instruction) -> int:
        """How often a loop runs: as the compiler noted, or as its condition says."""
        noted = re.search(r'"known_trip_count":({[^}]*})', loop.options)
        if noted:
            return int(json.loads(noted[1])["n"])
        condition = re.search(r"condition=%?([\w.\-]+)", loop.options)[1]
        lines = self.computations[condition].values()
        bounds = [int(line.literal) for line in lines if line.kind == "constant"]
        if len(bounds) != 1 or "direction=LT" not in "".join(line.options for line in lines):
            raise ValueError(f"how often does the loop {loop.name} run?")
        return bounds[0]

    def all(self, *kinds):
        """The instructions of kinds: times, instruction, and the computation that it is in."""
        for name, lines in self.computations.items():
            for instruction in lines.values() if self.times[name] else ():
                if instruction.kind.removesuffix("-start") in kinds:
                    yield self.times[name], instruction, lines

    def flops(self) -> Counter:
        """Operations of all products, by the dtype of what they multiply. Two for each addition."""
        operations = Counter()
        for times, product, lines in self.all("dot"):
            ((dtype, extents),) = lines[product.operands[0]].arrays
            summed = math.prod(extents[dim] for dim in product.numbers("lhs_contracting_dims"))
            operations[dtype] += 2 * times * summed * math.prod(product.arrays[0][1])
        return operations


# ---- groups of devices


def groups_of(options: str, devices: int) -> list[tuple[int, ...]]:
    """The groups in which devices exchange arrays, of any of the forms that XLA prints."""
    text = options.partition("replica_groups=")[2]
    if text.startswith("{{"):
        rows = re.findall(r"{([\d,]+)}", text[: text.index("}}") + 1])
        return [tuple(map(int, row.split(","))) for row in rows]
    if iota := re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text):
        shape, source, order = (list(map(int, p.split(","))) if p else None for p in iota.groups())
        numbers = np.arange(math.prod(source)).reshape(source)
        return [*map(tuple, numbers.transpose(order).reshape(shape).tolist())]
    if mesh := re.match(r"mesh\[([^\]]*)\] ?{([^}]*)}", text):
        return _groups_of_mesh(*mesh.groups())
    if text.startswith("{}") or not text:
        return [tuple(range(devices))]
    raise ValueError(f"replica_groups={text[:80]}: a form that is not known")


def _groups_of_mesh(axes: str, named: str):
    pairs = re.findall(r"'([^']+)'=(\d+)", axes)
    if not re.fullmatch(r"('[^',:]+',? ?)+", named) or "device_ids" in axes:
        raise ValueError(f"replica_groups=mesh[{axes}] {{{named}}}: a form that is not known")
    names, extents = [name for name, _ in pairs], [int(extent) for _, extent in pairs]
    inside = [names.index(name) for name in re.findall(r"'([^']+)'", named)]
    outside = [dim for dim in range(len(names)) if dim not in inside]
    numbers = np.arange(math.prod(extents)).reshape(extents).transpose(outside + inside)
    size = math.prod(extents[dim] for dim in inside)
    return [*map(tuple, numbers.reshape(-1, size).tolist())]


def axis_of(groups, mesh: dict[str, int]) -> str:
    """The dimensions of a mesh over which the groups reach, such as "dp" or "dp+tp"."""
    names, wanted = list(mesh), {frozenset(group) for group in groups}
    numbers = np.arange(math.prod(mesh.values())).reshape(*mesh.values())
    for count in range(len(names) + 1):
        for inside in itertools.combinations(range(len(names)), count):
            outside = [dim for dim in range(len(names)) if dim not in inside]
            size = math.prod(numbers.shape[dim] for dim in inside)
            rows = numbers.transpose(outside + list(inside)).reshape(-1, size)
            if {frozenset(row) for row in rows.tolist()} == wanted:
                return "+".join(names[dim] for dim in inside if numbers.shape[dim] > 1)
    raise ValueError(f"groups {sorted(map(sorted, wanted))[:4]} are along no axes of {mesh}")


# ---- collectives


@dataclass
class Collective:
    """One exchange. payload: bytes of the whole array, gathered or before it is scattered."""

    kind: str
    axis: str
    size: int
    payload: int
    times: int = 1
    names: list = field(default_factory=list)

    @property
    def sent(self) -> float:
        """Bytes that a device sends in a ring, all times together."""
        share = {"all-reduce": 2 * (self.size - 1) / self.size, "collective-permute": 1.0}
        return self.times * self.payload * share.get(self.kind, (self.size - 1) / self.size)


class Users:
    """Which instructions of a computation use which."""

    def __init__(self, lines: dict):
        self.lines, self.of = lines, {}
        for instruction in lines.values():
            for operand in instruction.operands:
                self.of.setdefault(operand, []).append(instruction)

    def through_forms(self, instruction: Instruction) -> list[Instruction]:
        """The users that compute something."""
        users = []
        for user in self.of.get(instruction.name, ()):
            users += self.through_forms(user) if user.kind in FORMS else [user]
        return users

    def is_scattered(self, instruction: Instruction, size: int) -> bool:
        """Whether a device only uses its share of a sum."""
        users = self.through_forms(instruction)
        return bool(users) and all(
            user.kind == "dynamic-slice"
            and math.prod(user.arrays[0][1]) * size == math.prod(instruction.arrays[0][1])
            for user in users
        )

    def joined(self, instruction: Instruction) -> Instruction:
        """The sum of sums that a sum over devices goes into: itself if it goes into none."""
        while True:
            users = self.through_forms(instruction)
            if len(users) != 1 or users[0].kind != "add" or not self.adds_sums(users[0]):
                return instruction
            instruction = users[0]

    def adds_sums(self, add: Instruction) -> bool:
        """Whether all that is added are sums over devices."""
        return all(self.is_sum(self.lines[operand]) for operand in add.operands)

    def is_sum(self, instruction: Instruction) -> bool:
        while instruction.kind in FORMS:
            instruction = self.lines[instruction.operands[0]]
        return instruction.kind == "all-reduce" or (
            instruction.kind == "add" and self.adds_sums(instruction)
        )


def collectives(module: Module, mesh: dict[str, int], as_written: bool = False):
    """The exchanges of a program over a mesh.

    A sum of which each device uses its share alone counts as a reduce-scatter, and sums that are
    added to each other count once: the compilers for GPUs and TPUs rewrite both. as_written: count
    neither so.
    """
    exchanges, users, devices = [], {}, math.prod(mesh.values())
    joined = {}
    for times, instruction, lines in module.all(*COLLECTIVES):
        kind = instruction.kind.removesuffix("-start")
        axis, size = _reach(instruction, mesh, devices)
        payload = sum(lines[name].bytes for name in instruction.operands)
        payload *= size if kind == "all-gather" else 1
        exchange = Collective(kind, axis, size, payload, times, [instruction.name])
        if kind == "reduce-scatter" or kind != "all-reduce" or as_written or size == 1:
            exchanges += [exchange] if size > 1 else []
            continue
        use = users.setdefault(id(lines), Users(lines))
        exchange.kind = "reduce-scatter" if use.is_scattered(instruction, size) else kind
        key = id(lines), use.joined(instruction).name, axis
        if key in joined:
            joined[key].names.append(instruction.name)
            continue
        joined[key] = exchange
        exchanges.append(exchange)
    return exchanges


def _reach(instruction: Instruction, mesh, devices):
    """The axes along which an exchange goes, and the size of its groups."""
    if instruction.kind.startswith("collective-permute"):
        pairs = re.findall(
            r"{(\d+),(\d+)}", instruction.options.partition("source_target_pairs=")[2]
        )
        moves = [pair for pair in pairs if pair[0] != pair[1]]
        return "+".join(mesh), 2 if moves else 1
    groups = groups_of(instruction.options, devices)
    return axis_of(groups, mesh), len(groups[0])


def by_kind(exchanges: list[Collective]) -> dict:
    """Kind and axis: how many, the bytes of the whole arrays, and the bytes that a device sends."""
    table = {}
    for exchange in exchanges:
        row = table.setdefault((exchange.kind, exchange.axis), [0, 0, 0.0])
        row[0] += exchange.times
        row[1] += exchange.times * exchange.payload
        row[2] += exchange.sent
    return table


EXCHANGE = re.compile(rf" = (.*?) ({'|'.join(COLLECTIVES)})(?:-start)?\(.*channel_id=(\d+)")


def channels(text: str) -> dict[str, list[int]]:
    """By kind how many exchanges the text of a program has, and the bytes of their results.

    The compiler for TPUs writes an exchange into each fusion that begins, carries on or ends it:
    those of one channel are one exchange. A loop counts once.
    """
    sizes = {}
    for line in text.splitlines():
        if match := EXCHANGE.search(line):
            arrays, kind, channel = match.groups()
            payload = sum(math.prod(dims) * BITS[dtype] // 8 for dtype, dims in arrays_of(arrays))
            sizes.setdefault(kind, {})[channel] = payload
    return {kind: [len(by), sum(by.values())] for kind, by in sorted(sizes.items())}
