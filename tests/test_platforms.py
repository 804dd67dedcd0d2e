"""The command `jaxgrad platforms`: facts from StableHLO, and what operators are on platforms."""

import pathlib
import types

import jax
import numpy
import pytest

from jaxgrad import platforms
from jaxgrad.cli import main

# of JAX's documentation: StableHLO of a call of a library, of Python, and of a float64
KERNEL = "%0 = stablehlo.custom_call @lapack_sgetrf_ffi(%arg0) : (tensor<2x2xf32>)"
CALLBACK = "%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) : (tensor<2xf32>)"
WIDE = "%0 = stablehlo.convert %arg0 : (tensor<2xf32>) -> tensor<2xf64>"


def test_facts():
    assert platforms.facts(KERNEL, False).kernels == ("lapack_sgetrf_ffi",)
    assert not platforms.facts(KERNEL, False).calls_back
    assert platforms.facts(CALLBACK, False).calls_back
    assert platforms.facts(WIDE, False).is_wide
    assert platforms.facts(WIDE.replace("2xf64", "f64"), False).is_wide
    assert not platforms.facts(WIDE, True).is_wide
    assert not platforms.facts(KERNEL, False).is_wide


def test_operators_of_xla_alone():
    assert set(platforms.row("sin").values()) == {platforms.Lowered()}


@pytest.mark.parametrize("platform", platforms.PLATFORMS)
def test_a_program_that_calls_python(platform):
    """JAX lowers it for the platform of the process alone."""
    shape = jax.ShapeDtypeStruct((2,), "float32")
    program = types.SimpleNamespace(
        inputs=(),
        outputs=(),
        wide=False,
        jitted=jax.jit(lambda: jax.pure_callback(lambda: numpy.ones(2, "float32"), shape)),
    )
    assert platforms.lowered(program, platform) == platforms.Lowered(calls_back=True)


def test_eigenvalues_have_no_kernel_on_tpus():
    row = platforms.row("linalg_eigvals")
    assert "lapack_sgeev_ffi" in row["cpu"].kernels
    assert ".cpu()" in row["tpu"].error
    assert row["cuda"].error is row["rocm"].error is None


def test_command(capsys):
    assert main(["platforms", "sin", "torch.linalg.eigvals"]) == 0
    text = capsys.readouterr().out
    assert "Of 2 operators, 1 are operations of XLA alone on every platform" in text
    assert "| `linalg.eigvals` |" in text and "`lapack_sgeev_ffi`" in text
    assert main(["platforms", "no_such"]) == 1
    assert capsys.readouterr().err == "jaxgrad platforms: no operator no_such\n"


@pytest.mark.checkout
@pytest.mark.parametrize("name", ["linalg_qr", "nll_loss", "cos"])
def test_the_page_is_what_the_command_prints(name):
    """Else run `python -m jaxgrad platforms > docs/api/platforms.md`."""
    page = pathlib.Path(__file__).parents[1] / "docs/api/platforms.md"
    text = platforms.table([name])
    assert text.startswith(platforms.HEAD) and page.read_text().startswith(platforms.HEAD)
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert set(rows) <= set(page.read_text().splitlines())
    assert rows or f"| `{name}` |" not in page.read_text()
