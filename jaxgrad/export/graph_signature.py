"""What the inputs and outputs of an exported program are, as torch.export.graph_signature."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..names.missing import missing_in


@dataclasses.dataclass
class TensorArgument:
    """A tensor. name: of its node in the graph."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size that varies. name: of its node in the graph."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A number, a text or None, which is a part of the program. name: of the argument."""

    name: str
    value: Any


ArgumentSpec = TensorArgument | SymIntArgument | ConstantArgument


class InputKind(enum.Enum):
    """Where an input of a program comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """Where an output of a program goes."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """An input of a program: its kind, its argument, and the path of a parameter, buffer or
    constant. persistent: whether a buffer is in the state dict.
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __str__(self):
        target = "" if self.target is None else f" target={self.target!r}"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output of a program: its kind, its argument, and the path or name of what it changes."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self):
        target = "" if self.target is None else f" target={self.target!r}"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported program, in order.

    >>> program = jaxgrad.export.export(jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(1, 2),))
    >>> program.graph_signature.parameters, program.graph_signature.user_inputs
    (('weight', 'bias'), ('input',))
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> Iterator[InputSpec]:
        return (spec for spec in self.input_specs if spec.kind is kind)

    def _outputs(self, kind: OutputKind) -> Iterator[OutputSpec]:
        return (spec for spec in self.output_specs if spec.kind is kind)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(spec.target for spec in self._inputs(kind))

    def _by_name(self, kind: InputKind) -> dict[str, str]:
        return {spec.arg.name: spec.target for spec in self._inputs(kind)}

    def _changed(self, kind: OutputKind) -> dict[str, str]:
        return {spec.arg.name: spec.target for spec in self._outputs(kind)}

    @property
    def parameters(self) -> Collection[str]:
        """The paths of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> Collection[str]:
        """The paths of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        """The paths of the buffers that are not in the state dict."""
        return tuple(s.target for s in self._inputs(InputKind.BUFFER) if not s.persistent)

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """The paths of tensors that are neither parameters nor buffers."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        """Nothing: programs have no objects of C++."""
        return ()

    @property
    def user_inputs(self) -> Collection[Any]:
        """The names of the arguments, and the values of constant ones."""
        return tuple(map(_shown, self._inputs(InputKind.USER_INPUT)))

    @property
    def user_outputs(self) -> Collection[Any]:
        """The names of the results, and the values of constant ones."""
        return tuple(map(_shown, self._outputs(OutputKind.USER_OUTPUT)))

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The paths of parameters by the names of inputs."""
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The paths of buffers by the names of inputs."""
        return self._by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The paths of constants by the names of inputs."""
        return self._by_name(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Nothing: programs have no objects of C++."""
        return {}

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The paths of the buffers that a call changes, by the names of outputs."""
        return self._changed(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """The paths of the parameters that a call changes, by the names of outputs."""
        return self._changed(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """The names of the arguments that a call changes, by the names of outputs."""
        return self._changed(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> None:
        """None: a program has no outputs for gradients, which its derivative gives."""
        return None

    @property
    def assertion_dep_token(self) -> None:
        """None: programs have no assertions on values."""
        return None

    @property
    def input_tokens(self) -> list[str]:
        """Nothing: programs have no effects in order."""
        return []

    @property
    def output_tokens(self) -> list[str]:
        """Nothing: programs have no effects in order."""
        return []

    def __str__(self):
        inputs, outputs = ("\n".join(map(str, s)) for s in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _shown(spec):
    is_constant = isinstance(spec.arg, ConstantArgument)
    return spec.arg.value if is_constant else spec.arg.name


__getattr__ = missing_in(__name__)
