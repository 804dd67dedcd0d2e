"""How long a step takes on chips: figures of their vendors, and formulas of rings.

The names of a mesh are those of scaling.py: devices that differ in `tp` alone are neighbours.
"""

import math
from dataclasses import dataclass

# assumed, not measured: the shares of the peak that products and links reach, and seconds of a hop
PRODUCTS, LINKS = 0.6, 0.8
HOP_INSIDE, HOP_BETWEEN = 1e-6, 5e-6
# smaller arrays are sent together with others
SMALL = 1 << 20


@dataclass(frozen=True)
class Chip:
    """flops: of bfloat16 products each second. memory: bytes; memory_rate: bytes each second."""

    name: str
    flops: float
    memory: float
    memory_rate: float


@dataclass(frozen=True)
class Nodes(Chip):
    """Chips in nodes of fast links; each has its own slower link to the other nodes."""

    node: int
    inside: float
    between: float

    def exchange(self, payload: float, axis: str, mesh: dict[str, int], hops: bool) -> float:
        """Seconds to gather or to scatter an array over axes of a mesh."""
        size = extent(axis, mesh)
        stride = mesh["tp"] if axis == "dp" else 1
        here = min(size, max(1, self.node // stride))
        nodes = math.ceil(size / here)
        # all links of a node to others are in use, each by a ring of its own
        fast = (size - 1) / size * payload / self.inside if here > 1 else 0.0
        slow = (nodes - 1) / nodes * payload / (here * self.between)
        wait = (nodes - 1) * HOP_BETWEEN + (here - 1) * HOP_INSIDE if hops else 0.0
        return max(fast, slow) / LINKS + wait


@dataclass(frozen=True)
class Torus(Chip):
    """Chips in a torus of three dimensions. link: bytes each second and direction."""

    link: float

    def exchange(self, payload: float, axis: str, mesh: dict[str, int], hops: bool) -> float:
        size, chips = extent(axis, mesh), math.prod(mesh.values())
        dims = 3 if size == chips else {"dp": 2, "tp": 1}[axis]
        # a ring uses both directions; fewer than 64 chips have no links that close it
        rate = dims * self.link * (2 if chips >= 64 else 1)
        wait = dims * (size ** (1 / dims) - 1) * HOP_INSIDE if hops else 0.0
        return (size - 1) / size * payload / rate / LINKS + wait


H100 = Nodes("H100", 989e12, 80e9, 3.35e12, node=8, inside=450e9, between=50e9)
V5P = Torus("TPU v5p", 459e12, 95e9, 2.765e12, link=100e9)
CHIPS = (H100, V5P)


def extent(axis: str, mesh: dict[str, int]) -> int:
    return math.prod(mesh[name] for name in axis.split("+"))


def seconds(chip: Chip, exchanges, mesh) -> float:
    """Of exchanges: kind, axis, how many, and the bytes of the whole array of one."""
    total = 0.0
    for kind, axis, times, payload in exchanges:
        passes = 2 if kind == "all-reduce" else 1
        total += passes * times * chip.exchange(payload, axis, mesh, payload >= SMALL)
    return total


@dataclass
class Prediction:
    """Seconds of the parts of a step. state: reading and writing parameters and their state."""

    chip: Chip
    products: float
    state: float
    tp: float
    dp: float

    @property
    def overlapped(self) -> float:
        """The sums of tensor parallel layers stand between products; the rest runs beside them."""
        return max(self.products + self.tp, self.dp) + self.state

    @property
    def in_turns(self) -> float:
        return self.products + self.tp + self.dp + self.state

    @property
    def limit(self) -> str:
        if self.dp > self.products + self.tp:
            return "dp exchanges"
        return "products" if self.products > self.tp else "tp exchanges"


def predict(chip: Chip, figures: dict) -> Prediction:
    """Of what scaling.py finds in a program."""
    mesh, exchanges = figures["mesh"], [tuple(exchange) for exchange in figures["exchanges"]]
    of_tp = [exchange for exchange in exchanges if exchange[1] == "tp"]
    rest = [exchange for exchange in exchanges if exchange[1] != "tp"]
    return Prediction(
        chip,
        products=figures["flops"] / (chip.flops * PRODUCTS),
        state=2 * figures["arguments"] / chip.memory_rate,
        tp=seconds(chip, of_tp, mesh),
        dp=seconds(chip, rest, mesh),
    )
