"""tests/benchmarks/scaling.py reads programs right, and the programs of sharded models compute,
send and hold what they should.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers import hangs
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgrad.compiled.placement import MeshProgram
from jaxgrad.distributed.device_mesh import DeviceMesh

pytestmark = pytest.mark.checkout

PROGRAM = Path(__file__).parent / "sharded_programs.py"
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
chips, hlo = __import__("chips"), __import__("hlo")
sys.path.remove(str(BENCHMARKS))

LAYERS, WIDTH, BLOCK, EMBEDDING = 2, 64, 4 * 64**2 + 3 * 64 * 176, 128 * 64


@functools.cache
def printed(devices: int, tp: int = 1):
    """What the program prints in a process of its own."""
    child = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), str(devices), str(tp)],
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS)},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.partition("FOUND ")[2])


def total(cell, kind, axis):
    """Bytes of the exchanges of a kind, those of single numbers left out."""
    rows = [row for row in cell["exchanges"] if row[:2] == [kind, axis] and row[3] > 8]
    return sum(times * payload for _, _, times, payload in rows)


@pytest.mark.slow
@pytest.mark.parametrize("recomputes", ["recomputes False", "recomputes True"])
def test_a_sharded_step_gathers_parameters_twice_and_scatters_gradients_once(recomputes):
    """In bfloat16; the gradients of norms and of the embedding are summed in float32. The embedding
    and the head are gathered once. No device gets the tokens of others.
    """
    cell, norms = printed(4)[recomputes], (2 * LAYERS + 1) * WIDTH
    blocks = LAYERS * (BLOCK + 2 * WIDTH)
    gathered = 2 * (2 * blocks + 2 * EMBEDDING + WIDTH)
    scattered = 2 * (LAYERS * BLOCK + EMBEDDING) + 4 * (EMBEDDING + norms)
    assert total(cell, "all-gather", "dp") == gathered
    assert total(cell, "reduce-scatter", "dp") == scattered
    assert cell["sent"] == pytest.approx(0.75 * (gathered + scattered), rel=1e-3)
    assert {kind for kind, *_, payload in cell["exchanges"] if payload > 8} == {
        "all-gather",
        "reduce-scatter",
    }


@pytest.mark.slow
def test_tensor_parallel_layers_sum_activations():
    """Twice in each pass through a block; once for tokens and once for the head's input."""
    cell = printed(4, 2)["recomputes False"]
    rows = [row for row in cell["exchanges"] if row[:2] == ["all-reduce", "tp"]]
    activations = 2 * 2 * 2 * 32 * WIDTH  # bytes, sequences of both devices
    assert sum(times for *_, times, payload in rows if payload == activations) == 4 * LAYERS + 2
    assert {axis for _, axis, *_ in cell["exchanges"]} == {"dp", "tp"}
    norms = 2 * (4 * LAYERS + 1) * WIDTH
    alone = total(printed(4)["recomputes False"], "all-gather", "dp")
    assert total(cell, "all-gather", "dp") == (alone - norms) / 2 + norms


@pytest.mark.slow
@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("recomputes", ["recomputes False", "recomputes True"])
def test_products_are_those_of_the_formula(tp, recomputes):
    cell = printed(4, tp)[recomputes]
    assert cell["flops"] == pytest.approx(cell["wanted flops"], rel=0.03)
    assert cell["flops"] == cell["flops before"]
    assert [*cell["dtypes"]] == ["bf16"]


@pytest.mark.slow
def test_checkpoints_around_sharded_blocks_recompute():
    kept, again = (printed(4)[f"recomputes {recomputes}"] for recomputes in (False, True))
    assert again["flops"] > 1.2 * kept["flops"]
    assert again["temporaries"] < 0.8 * kept["temporaries"]


@pytest.mark.slow
def test_checkpoints_around_and_inside_sharded_blocks_leave_gradients():
    assert max(printed(4)["differences"]) < 1e-5 < printed(4)["largest"]


@pytest.mark.slow
def test_each_device_holds_its_share_of_parameters_and_state():
    """Three float32 numbers for each parameter."""
    for devices in (1, 2, 4):
        cell = printed(devices)["recomputes True"]
        assert cell["arguments"] == pytest.approx(12 * cell["parameters"] / devices, rel=0.01)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}, x={}", [(0, 1), (2, 3)]),
        ("[2,2]<=[4], x={}", [(0, 1), (2, 3)]),
        ("[2,2]<=[2,2]T(1,0), x={}", [(0, 2), (1, 3)]),
        ("[4,2]<=[2,2,2]T(0,2,1)", [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ("mesh['a'=2,'b'=2] {'a'}, x={}", [(0, 2), (1, 3)]),
        ("mesh['a'=2,'b'=1,'c'=2] {'c'}", [(0, 1), (2, 3)]),
        ("mesh['a'=2,'b'=2] {'a','b'}", [(0, 1, 2, 3)]),
        ("{}, x={}", [(0, 1, 2, 3)]),
    ],
)
def test_groups_of_devices_are_read(text, groups):
    assert hlo.groups_of(f"channel_id=1, replica_groups={text}", 4) == groups


@pytest.mark.parametrize("text", ["@name, x={}", "mesh['a'=4] {'a':(1)2}"])
def test_groups_that_are_not_known_raise(text):
    with pytest.raises(ValueError, match="not known"):
        hlo.groups_of(f"replica_groups={text}", 4)


def test_groups_have_axes():
    mesh = {"dp": 4, "tp": 2}
    assert hlo.axis_of([(0, 1), (2, 3), (4, 5), (6, 7)], mesh) == "tp"
    assert hlo.axis_of([(0, 2, 4, 6), (7, 5, 3, 1)], mesh) == "dp"
    assert hlo.axis_of([tuple(range(8))], mesh) == "dp+tp"
    with pytest.raises(ValueError, match="along no axes"):
        hlo.axis_of([(0, 3), (1, 2), (4, 7), (5, 6)], mesh)


PROGRAM_TEXT = """
%condition (p: (s32[], f32[2,3])) -> pred[] {
  %p = (s32[], f32[2,3]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant(5)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}
%body (q: (s32[], f32[2,3])) -> (s32[], f32[2,3]) {
  %q = (s32[], f32[2,3]{1,0}) parameter(0)
  %x = f32[2,3]{1,0} get-tuple-element(%q), index=1
  %square = f32[2,2]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT %next = (s32[], f32[2,3]{1,0}) tuple(%q, %x)
}
ENTRY %main (a: f32[4,6]) -> f32[4,6] {
  %a = bf16[4,6]{1,0} parameter(0)
  %start = (s32[], f32[2,3]{1,0}) tuple(%a)
  %loop = (s32[], f32[2,3]{1,0}) while(%start), condition=%condition, body=%body
  %first = bf16[4,6]{1,0} all-reduce(%a), replica_groups=[2,2]<=[4], to_apply=%add
  %second = bf16[4,6]{1,0} all-reduce(%a), replica_groups=[2,2]<=[4], to_apply=%add
  %flat = bf16[24]{0} reshape(%first)
  %other = bf16[24]{0} reshape(%second)
  %both = bf16[24]{0} add(%flat, %other)
  %third = bf16[4,6]{1,0} all-reduce(%a), replica_groups={{0,2},{1,3}}, to_apply=%add
  %part = bf16[2,6]{1,0} dynamic-slice(%third, %both, %both), dynamic_slice_sizes={2,6}
  ROOT %whole = bf16[4,6]{1,0} all-gather(%part), replica_groups={{0,2},{1,3}}, dimensions={0}
}
"""


def test_a_program_is_read():
    """Loops count as often as they run, sums that are added once, a sum that is cut scatters."""
    module, mesh = hlo.Module(PROGRAM_TEXT), {"dp": 2, "tp": 2}
    assert module.flops() == {"f32": 5 * 2 * 2 * 2 * 3}
    assert hlo.by_kind(hlo.collectives(module, mesh)) == {
        ("all-reduce", "tp"): [1, 48, 48.0],
        ("reduce-scatter", "dp"): [1, 48, 24.0],
        ("all-gather", "dp"): [1, 48, 24.0],
    }
    assert hlo.by_kind(hlo.collectives(module, mesh, as_written=True)) == {
        ("all-reduce", "tp"): [2, 96, 96.0],
        ("all-reduce", "dp"): [1, 48, 48.0],
        ("all-gather", "dp"): [1, 48, 24.0],
    }


def test_a_mesh_may_have_devices_that_are_not_there(monkeypatch):
    """Such as those of a topology that a program is compiled for."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("dp",))

    def none(platform):
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "devices", none)
    assert DeviceMesh.of(mesh).shape == (1,)


def test_a_program_is_lowered_without_numbers_on_its_devices(monkeypatch):
    """The devices of a topology hold nothing. The program is that of numbers on devices."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("dp",))
    whole = NamedSharding(mesh, PartitionSpec())
    x = jax.device_put(np.ones(3, np.float32), whole)
    jitted = jax.jit(lambda x, rate: x * rate)
    wanted = jitted.lower(x, jax.device_put(0.5, whole)).as_text()
    monkeypatch.setattr(jax, "device_put", None)
    assert MeshProgram(jitted, 0).lower(x, 0.5).as_text() == wanted
    assert MeshProgram(jitted, 0).trace(x, 0.5).lower().as_text() == wanted


def test_the_parts_of_an_exchange_in_a_program_for_tpus_count_once():
    text = """
  %g.1 = bf16[64,32]{1,0:T(8,128)(2,1)S(1)} all-gather(%p.1), channel_id=7, dimensions={0}
  %g.2 = bf16[64,32]{1,0} all-gather(%p.2), channel_id=7, dimensions={0}
  %s.1 = (f32[8]{0}, /*index=1*/f32[]) all-reduce(%a, %b), channel_id=9, to_apply=%add
  %s.2 = f32[8]{0} all-reduce-start(%a), channel_id=12, to_apply=%add
  ROOT %t = (f32[8]{0}) tuple(%s.1)
"""
    assert hlo.channels(text) == {"all-gather": [1, 4096], "all-reduce": [2, 36 + 32]}


def test_exchanges_take_the_time_of_their_slowest_link():
    """In nodes of 8: inside of one, with all links to others, and with one link to others."""
    gather = functools.partial(chips.H100.exchange, 8e9, hops=False)
    inside = gather("dp", {"dp": 8, "tp": 1})
    assert inside == pytest.approx(7 / 8 * 8e9 / 450e9 / 0.8)
    assert gather("dp", {"dp": 64, "tp": 1}) == pytest.approx(7 / 8 * 8e9 / 400e9 / 0.8)
    assert gather("dp", {"dp": 8, "tp": 8}) == pytest.approx(7 / 8 * 8e9 / 50e9 / 0.8)
    assert gather("tp", {"dp": 8, "tp": 8}) == inside


@pytest.mark.parametrize("arguments", [["tpus"], ["tiny", "--topology", "v5e:2x2"]])
def test_nothing_is_compiled_for_tpus_without_their_compiler(arguments, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    scaling = __import__("scaling")
    monkeypatch.setattr(scaling.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["scaling.py", *arguments])
    scaling.main()
    words = "skipped: the compiler for TPUs is not installed (pip install libtpu)\n"
    assert capsys.readouterr().out == words
