"""Weak scaling on paper: a step of a decoder is compiled for many devices and not run, and its
program says what a device computes, sends and holds: docs/scaling.md.

    python tests/benchmarks/scaling.py 7b --devices 64 --tp 8
    python tests/benchmarks/scaling.py table
    python tests/benchmarks/scaling.py tpus     # of docs/accelerators.md
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace

import chips
import hlo
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.distributed.device_mesh import DeviceMesh, init_device_mesh
from jaxgrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from jaxgrad.distributed.tensor import Replicate, Shard, distribute_tensor
from jaxgrad.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from jaxgrad.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Size:
    layers: int
    width: int
    hidden: int
    heads: int
    vocabulary: int = 32000

    @property
    def of_block(self) -> int:
        """The numbers in the matrices of a block."""
        return 4 * self.width**2 + 3 * self.width * self.hidden

    @property
    def parameters(self) -> int:
        norms = (2 * self.layers + 1) * self.width
        return self.layers * self.of_block + 2 * self.vocabulary * self.width + norms


SIZES = {
    "1b": Size(20, 2048, 5632, 16),
    "7b": Size(32, 4096, 11008, 32),
    "tiny": Size(2, 64, 176, 4, 128),
}


# ---- the model


class Block(nn.Module):
    def __init__(self, size: Size, length: int):
        super().__init__()
        width, hidden = size.width, size.hidden
        self.length, self.extent = length, width // size.heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def angles(self, dtype):
        """Cosines and sines of the rotations, made here: each device needs all of them."""
        powers = torch.arange(0, self.extent, 2).float() / self.extent
        angles = torch.outer(torch.arange(self.length).float(), 10000.0**-powers)
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], -1, self.extent).transpose(1, 2)

    def forward(self, x):
        cos, sin = self.angles(x.dtype)

        def rotated(x):
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        h = self.norm1(x)
        q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
        a = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """RMSNorm, rotary positions and SwiGLU. recomputes: whether blocks are checkpointed."""

    def __init__(self, size: Size, length: int, recomputes: bool):
        super().__init__()
        self.recomputes = recomputes
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList([Block(size, length) for _ in range(size.layers)])
        self.norm = nn.RMSNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputes else block(x)
        return self.head(self.norm(x))


PLAN = {
    **{f"blocks.*.{name}": ColwiseParallel() for name in ("q", "k", "v", "gate", "up")},
    **{f"blocks.*.{name}": RowwiseParallel() for name in ("out", "down")},
    "embedding": RowwiseParallel(input_layouts=Replicate()),
    "head": ColwiseParallel(),
}


def parallel(model: Decoder, mesh):
    """The recipe: tensor parallel layers over `tp`, each block sharded over `dp`."""
    if mesh["tp"].size() > 1:
        parallelize_module(model, mesh["tp"], PLAN)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"], mp_policy=policy)
    return fully_shard(model, mesh=mesh["dp"], mp_policy=policy)


@dataclass(frozen=True)
class Cell:
    """A step to compile. batch: sequences for each device."""

    size: Size
    devices: int
    tp: int = 1
    batch: int = 2
    length: int = 4096
    recomputes: bool = True

    @property
    def mesh(self) -> dict[str, int]:
        return {"dp": self.devices // self.tp, "tp": self.tp}

    @property
    def tokens(self) -> int:
        """Those of a step, for each device."""
        return self.batch * self.length


def mesh_for(cell: Cell, topology: str | None):
    """A mesh of the devices of this process, or of a topology of TPUs, which need not be there."""
    names, shape = tuple(cell.mesh), tuple(cell.mesh.values())
    if topology is None:
        return init_device_mesh("cpu", shape, mesh_dim_names=names)
    grid = topologies.make_mesh(topologies.get_topology_desc(topology, "tpu"), shape, names)
    types = (AxisType.Auto,) * len(shape)
    return DeviceMesh.of(Mesh(grid.devices, names, axis_types=types))


def lowered(cell: Cell, topology: str | None = None):
    """The training step, traced and not run: nothing that it reads has numbers."""
    with torch.device("meta"):
        model = Decoder(cell.size, cell.length, cell.recomputes)
        x = torch.zeros(cell.batch * cell.devices, cell.length, dtype=torch.int64)
    mesh = mesh_for(cell, topology)
    parallel(model, mesh)
    optimizer = torch.optim.Adam(model.parameters())

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).float().flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = distribute_tensor(x, mesh, [Shard(0), Replicate()])
    return step.lower(x, x)


# ---- what its program says

# The compiler for CPUs puts off all sums of gradients and makes one of them, and orders a program
# so that much can run at once: both would hold many arrays that a GPU or TPU need not hold. The
# pass that jaxgrad leaves out is left out here too.
OPTIONS = {
    "xla_disable_hlo_passes": "reshape-decomposer,cpu-all-reduce-combiner",
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


def use_devices(count: int, folder: str):
    """Let one processor stand for devices, and XLA write programs; before anything else of JAX."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={count} --xla_dump_to='{folder}' "
        "--xla_dump_hlo_module_re=jit_step --xla_dump_hlo_pass_re=spmd"
    )


def partitioned(folder: str) -> str:
    """The program of a device as XLA's partitioner left it, before it was made one of a CPU."""
    files = sorted(pathlib.Path(folder).glob("*jit_step*after_spmd-partitioning*.txt"))
    if not files:
        raise FileNotFoundError(f"{folder}: XLA wrote no program of the partitioner")
    return files[-1].read_text()


def examine(cell: Cell, folder: str) -> dict:
    """Compile, and read from the program of one device what it computes, sends and holds."""
    if not dist.is_initialized():
        dist.init_process_group(rank=0, world_size=1)
    begun = time.perf_counter()
    low = lowered(cell)
    traced = time.perf_counter()
    compiled = low.compile(OPTIONS)
    ended = time.perf_counter()
    memory, text = compiled.memory_analysis(), compiled.as_text()
    # there is no partitioner for one device
    module = hlo.Module(partitioned(folder) if cell.devices > 1 else text)
    sent = hlo.collectives(module, cell.mesh)
    as_written = hlo.collectives(module, cell.mesh, as_written=True)
    exchanges = Counter()
    for exchange in sent:
        exchanges[exchange.kind, exchange.axis, exchange.payload] += exchange.times
    return {
        **asdict(cell),
        "mesh": cell.mesh,
        "flops": sum(hlo.Module(text).flops().values()),
        "flops before": sum(module.flops().values()),
        "dtypes": dict(module.flops()),
        "exchanges": [(kind, axis, n, size) for (kind, axis, size), n in exchanges.items()],
        "sent": sum(exchange.sent for exchange in sent),
        "sent as written": sum(exchange.sent for exchange in as_written),
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "outputs": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "seconds": [traced - begun, ended - traced],
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


# the share of the scores that a causal attention computes: it leaves out whole blocks of them
def causal_share(length: int) -> float:
    return 0.625 if length >= 4096 else 1.0


def closed_form(cell: Cell) -> float:
    """The operations of a step's products, for each device.

    A product of the forward pass has two in the backward pass. A recomputed block computes all but
    its last product again. Attention has two products, and five in its backward pass.
    """
    size, tokens = cell.size, cell.tokens
    blocks = 6 * size.of_block + cell.recomputes * 2 * (size.of_block - size.width * size.hidden)
    scores = 2 * cell.length * size.width * causal_share(cell.length)
    blocks += scores * (7 + 2 * cell.recomputes)
    return tokens * (size.layers * blocks + 6 * size.vocabulary * size.width)


def model_flops(cell: Cell) -> float:
    """What a step needs on paper for each device: nothing twice, and half of the scores."""
    size = cell.size
    matrices = size.layers * size.of_block + size.vocabulary * size.width
    return cell.tokens * (6 * matrices + 6 * size.layers * cell.length * size.width)


# ---- reports

TIMES = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "collective-permute")


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def report(cell: Cell, figures: dict):
    wanted = closed_form(cell)
    print(f"{cell.size.parameters / 1e9:.2f}e9 parameters, mesh {cell.mesh}, {cell.tokens} tokens")
    seconds = "traced in {:.0f} s, compiled in {:.0f} s".format(*figures["seconds"])
    print(f"{seconds}; {gigabytes(figures['resident'])} of memory to compile")
    print(f"products {figures['flops']:.4g} flops, by formula {wanted:.4g}")
    for kind, axis in sorted({tuple(row[:2]) for row in figures["exchanges"]}):
        rows = [row for row in figures["exchanges"] if tuple(row[:2]) == (kind, axis)]
        count, total = sum(row[2] for row in rows), sum(row[2] * row[3] for row in rows)
        over = f"{axis} ({chips.extent(axis, cell.mesh)})"
        print(f"  {count:5} {kind} over {over}: {gigabytes(total)}")
    print(f"sent {gigabytes(figures['sent'])}, as written {gigabytes(figures['sent as written'])}")
    held = sum(figures[name] for name in ("arguments", "temporaries", "outputs"))
    for name in ("arguments", "temporaries", "outputs"):
        print(f"{name} {gigabytes(figures[name])}")
    for chip in chips.CHIPS:
        verdict = "fits" if held < chip.memory else "DOES NOT FIT"
        spare = f"{(chip.memory - held) / chip.memory:.0%} spare"
        print(f"{gigabytes(held)}: {verdict} in {gigabytes(chip.memory)} of {chip.name}, {spare}")
        prediction = chips.predict(chip, figures)
        print("   " + " | ".join(columns(cell, prediction, prediction)))


# the steps that are compiled for slices of TPUs, with the devices of these
STEPS_FOR_TPUS = (("1b", "v5e:4x4", 16), ("7b", "v5e:16x16", 256))


def compile_for_tpus(cell: Cell, topology: str) -> dict:
    """What a device holds by the compiler for TPUs, and what it exchanges, without a TPU."""
    os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
    dist.init_process_group(rank=0, world_size=1)
    begun = time.perf_counter()
    low = lowered(cell, topology)
    traced = time.perf_counter()
    compiled = low.compile()
    ended = time.perf_counter()
    memory = compiled.memory_analysis()
    return {
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "outputs": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "code": memory.generated_code_size_in_bytes,
        "exchanges": hlo.channels(compiled.as_text()),
        "seconds": [traced - begun, ended - traced],
    }


def row_for_tpus(name: str, cell: Cell, topology: str, figures: dict) -> str:
    held = [figures[part] / 1e9 for part in ("arguments", "temporaries", "outputs", "code")]
    exchanges = [f"{n} {kind} {size / 1e9:.2f}" for kind, (n, size) in figures["exchanges"].items()]
    sizes = [f"{size:.2f}" for size in (*held, sum(held))]
    seconds = f"{sum(figures['seconds']):.0f}"
    layers = f"{name}, {cell.size.layers} layers"
    return "| " + " | ".join([layers, topology, *sizes, ", ".join(exchanges), seconds]) + " |"


def table_for_tpus(folder: str):
    """Whole steps, one sequence for each device, each compiled in a process of its own."""
    for name, topology, devices in STEPS_FOR_TPUS:
        cell = Cell(SIZES[name], devices, batch=1)
        figures = kept(name, cell, folder, topology)
        print(row_for_tpus(name, cell, topology, figures), flush=True)


def columns(cell: Cell, prediction: chips.Prediction, first: chips.Prediction) -> list[str]:
    """Of a row: the better case, in which exchanges run beside products, to the worse.

    first: the prediction for the fewest devices.
    """
    least, most = prediction.overlapped, prediction.in_turns
    share = model_flops(cell) / prediction.chip.flops
    return [
        f"{least:.2f} to {most:.2f}",
        f"{cell.tokens / least:,.0f} to {cell.tokens / most:,.0f}",
        f"{share / least:.0%} to {share / most:.0%}",
        f"{first.overlapped / least:.0%} to {first.in_turns / most:.0%}",
        f"{prediction.products:.2f}, {prediction.tp:.2f}, {prediction.dp:.2f}",
        prediction.limit,
    ]


RECIPES = (("1b", 1), ("7b", 1), ("7b", 8))
COUNTS = (8, 64, 512)


def recipe(cell: Cell) -> str:
    return " x ".join(f"{name} {extent}" for name, extent in cell.mesh.items() if extent > 1)


def table(folder: str):
    """All cells of docs/scaling.md, each compiled in a process of its own."""
    cells = [(name, Cell(SIZES[name], n, tp)) for name, tp in RECIPES for n in COUNTS]
    by_cell = {pair: kept(*pair, folder) for pair in cells}
    for chip in chips.CHIPS:
        print(f"\n{chip.name}")
        for name, cell in cells:
            first = chips.predict(chip, by_cell[name, replace(cell, devices=COUNTS[0])])
            row = columns(cell, chips.predict(chip, by_cell[name, cell]), first)
            print("| " + " | ".join([name, str(cell.devices), recipe(cell), *row]) + " |")
    print("\nmemory, exchanges, and what compiling took")
    for (name, cell), figures in by_cell.items():
        held = [figures[quantity] / 1e9 for quantity in ("arguments", "temporaries", "outputs")]
        row = [f"{size:.2f}" for size in (*held, sum(held))]
        row += [f"{figures[quantity] / 1e9:.1f}" for quantity in ("sent", "sent as written")]
        row += [f"{figures['flops'] / closed_form(cell) - 1:.1%}", f"{sum(figures['seconds']):.0f}"]
        row += [f"{figures['resident'] / 1e9:.1f}"]
        print("| " + " | ".join([name, str(cell.devices), recipe(cell), *row]) + " |")


def kept(name: str, cell: Cell, folder: str, topology: str | None = None) -> dict:
    """What a process finds, kept in a file, so that a table that was stopped goes on."""
    chip = f"-{topology.replace(':', '-')}" if topology else ""
    file = pathlib.Path(folder) / f"{name}-{cell.devices}-{cell.tp}{chip}.json"
    if not file.exists():
        options = ["--devices", str(cell.devices), "--tp", str(cell.tp), "--json", str(file)]
        options += ["--batch", str(cell.batch)]
        options += ["--topology", topology] if topology else []
        command = [sys.executable, __file__, name, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*SIZES, "table", "tpus"])
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--tp", type=int, default=1, help="the other devices are dp")
    parser.add_argument("--batch", type=int, default=2, help="sequences for each device")
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--layers", type=int, help="instead of those of the size")
    parser.add_argument("--keep", action="store_true", help="keep activations, recompute nothing")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--topology", help="compile for TPUs alone, such as v5p:4x4x4: libtpu")
    parser.add_argument("--results", default="/tmp/jaxgrad-scaling", help="the folder of a table")
    return parser.parse_args()


def main():
    arguments = options()
    if arguments.name == "table":
        os.makedirs(arguments.results, exist_ok=True)
        table(arguments.results)
        return
    if (arguments.name == "tpus" or arguments.topology) and not importlib.util.find_spec("libtpu"):
        print("skipped: the compiler for TPUs is not installed (pip install libtpu)")
        return
    if arguments.name == "tpus":
        os.makedirs(arguments.results, exist_ok=True)
        table_for_tpus(arguments.results)
        return
    size = SIZES[arguments.name]
    size = replace(size, layers=arguments.layers) if arguments.layers else size
    cell = Cell(
        size, arguments.devices, arguments.tp, arguments.batch, arguments.length, not arguments.keep
    )
    if math.prod(cell.mesh.values()) != arguments.devices:
        raise SystemExit(f"--devices {arguments.devices} is no multiple of --tp {arguments.tp}")
    if arguments.topology:
        figures = compile_for_tpus(cell, arguments.topology)
        print(row_for_tpus(arguments.name, cell, arguments.topology, figures))
    else:
        with tempfile.TemporaryDirectory() as folder:
            use_devices(arguments.devices, folder)
            figures = examine(cell, folder)
        report(cell, figures)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
