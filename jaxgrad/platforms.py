"""What each operator becomes on each platform: `jaxgrad platforms`, and docs/api/platforms.md.

The example of each operator is computed here, and the programs of its value and of its gradient are
lowered for platforms that need not be there. The facts are read from the text of StableHLO.
"""

from __future__ import annotations

import re
import warnings
from types import FunctionType
from typing import NamedTuple

import jax

import jaxgrad

from .core.aval import Aval, struct_of
from .ops import cards, library

PLATFORMS = "cpu", "cuda", "rocm", "tpu"
TARGET = re.compile(r"custom_call @([\w$]+)")
WIDE = re.compile(r"(?:tensor<|x|complex<)f64\b")


class Lowered(NamedTuple):
    """What programs are on a platform.

    kernels: the functions of libraries that XLA calls, such as LAPACK's; calls_back: whether Python
    on the host computes a part; is_wide: whether it computes in float64 what is in other dtypes;
    error: why it cannot be lowered, None where it can.
    """

    kernels: tuple[str, ...] = ()
    calls_back: bool = False
    is_wide: bool = False
    error: str | None = None

    @property
    def text(self) -> str:
        if self.error is not None:
            return f"no kernel: {self.error}"
        notes = [f"`{name}`" for name in self.kernels]
        notes += ["calls Python on the host"] * self.calls_back + ["float64"] * self.is_wide
        return ", ".join(notes) or "XLA's operations"


def facts(text: str, takes_wide: bool) -> Lowered:
    """What the StableHLO of a program shows; takes_wide: whether its arrays are of float64."""
    targets = sorted(set(TARGET.findall(text)))
    kernels = tuple([name for name in targets if "callback" not in name])
    calls_back = len(kernels) < len(targets)
    return Lowered(kernels, calls_back, not takes_wide and WIDE.search(text) is not None)


def calls_of(name: str) -> list:
    """The calls that the example of an operator makes of it."""
    operator, (expression, _) = _operator(name), library.table.example(name)
    operator.plans.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that PyTorch will drop
        FunctionType(compile(expression, "<example>", "eval"), {"torch": jaxgrad})()
    return [plan.call for plan in operator.plans.all_values()]


def _operator(name):
    for holder in (jaxgrad, jaxgrad.ops, jaxgrad.Tensor):
        function = getattr(holder, name, None)
        if hasattr(function, "operator"):
            return function.operator
    raise AttributeError(f"there is no operator {name!r}")


def programs_of(name: str) -> list:
    """The programs of the value and the gradients in the example of an operator."""
    programs = []
    for call in calls_of(name):
        programs.append(call)
        if any(call.tracked) and call.differentiable_outputs:
            gradients = call.reverse(call.tracked)
            programs += [gradients] if _has_formulas(gradients) else []
    return programs


def _has_formulas(gradients) -> bool:
    """Whether the gradients are known at all, whatever the platform."""
    try:
        _ = gradients.outputs
    except NotImplementedError:
        return False
    return True


def lowered(program, platform: str) -> Lowered:
    """A program as it is on a platform."""
    structs = [struct_of(kind) for kind in program.inputs]
    dtypes = {str(kind.dtype) for kind in program.inputs if isinstance(kind, Aval)}
    dtypes |= {str(output.dtype) for output in program.outputs}
    takes_wide = bool(dtypes & {"torch.float64", "torch.complex128"}) or float in program.inputs
    with jax.enable_x64(program.wide):
        traced = program.jitted.trace(*structs)
        try:
            text = traced.lower(lowering_platforms=(platform,)).as_text()
        except NotImplementedError as error:
            return Lowered(error=str(error))
        except ValueError:  # JAX's, for a platform on which this process cannot call Python
            if "callback[" not in str(traced.jaxpr):
                raise
            return Lowered(calls_back=True)
    return facts(text, takes_wide)


def joined(parts: list[Lowered]) -> Lowered:
    """What several programs are, together."""
    errors = [part.error for part in parts if part.error is not None]
    return Lowered(
        tuple(sorted({name for part in parts for name in part.kernels})),
        any(part.calls_back for part in parts),
        any(part.is_wide for part in parts),
        errors[0] if errors else None,
    )


def row(name: str) -> dict[str, Lowered]:
    """What an operator, with its gradient, is on each platform."""
    programs = programs_of(name)
    return {
        platform: joined([lowered(program, platform) for program in programs])
        for platform in PLATFORMS
    }


HEAD = """\
# Operators by platform

What each operator, with its gradient, becomes on CPUs, on GPUs of NVIDIA (cuda) and of AMD (rocm)
and on TPUs. `jaxgrad platforms` writes this table: it lowers the programs of each operator's
example for all four platforms, which needs no device, and reads the StableHLO. It shows what is
compiled, and not that a device has run it. `jaxgrad platforms NAME` prints one operator.

- A name such as `lapack_sgetrf_ffi` is a function of a library that XLA calls.
- "float64" says that a program computes in float64 what has another dtype.
- An operator without a kernel raises NotImplementedError on that platform, with what to do.
- Operators that you define with `torch.library` in Python or NumPy call the host by
  `jax.pure_callback`. JAX lowers it only for the platform that it runs on: a program with it cannot
  be lowered for another one.

A program of your own is lowered by `torch.export`, without a device too, and runs on each platform
that you name:

```python
import jaxgrad as torch

model, x = torch.nn.Linear(3, 2), torch.ones(4, 3)
program = torch.export.export(model, (x,), platforms=("cpu", "cuda", "rocm", "tpu"))
print(program.platforms, program.module()(x).shape)
```

```output
('cpu', 'cuda', 'rocm', 'tpu') torch.Size([4, 2])
```
"""


def table(names=None) -> str:
    """The page about some operators, or about all."""
    rows = {name: row(name) for name in names or cards.names()}
    plain = [name for name, parts in rows.items() if set(parts.values()) == {Lowered()}]
    lines = [
        f"| `{cards.public_path(name)}` | "
        + " | ".join(part.text.replace("|", "\\|") for part in parts.values())
        + " |"
        for name, parts in rows.items()
        if name not in plain
    ]
    called = [name for name, parts in rows.items() if any(p.calls_back for p in parts.values())]
    counts = (
        f"\nOf {len(rows)} operators, {len(plain)} are operations of XLA alone on every platform, "
        f"and {len(called)} call Python on the host. The others:\n"
    )
    head = ["", f"| operator | {' | '.join(PLATFORMS)} |", "|---" * (len(PLATFORMS) + 1) + "|"]
    return HEAD + counts + "\n".join([*head, *lines] if lines else []) + "\n"
