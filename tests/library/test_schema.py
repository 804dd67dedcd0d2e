"""The schemas that `infer_schema` gives, as torch 2.13 does for the same annotations."""
# ruff: noqa: UP006, UP007, UP035, UP045, B008 (old annotations are what is tested)

from typing import List, Optional, Tuple, Union

import pytest

import jaxgrad as torch
from jaxgrad import Tensor
from jaxgrad.library import infer_schema


def several(x: Tensor, y: Optional[Tensor] = None, *, n: int = 3, z: float = 1.5, s: str = "a"): ...


def optional(x: Tensor | None, n: int | None = None) -> None: ...


def lists(x: List[int], y: list[Tensor], z: Optional[List[float]] = None) -> List[Tensor]: ...


def scalars(x: Union[int, float, bool], b: bool = True) -> tuple[Tensor, int]: ...


def kinds(
    x: Tensor, d: torch.dtype = torch.float32, v: torch.device = torch.device("cpu")
) -> bool: ...


def maybe(x: List[Optional[Tensor]], inf: float = float("inf")) -> "Tensor": ...


several.__annotations__["return"] = Tensor

SCHEMAS = {
    several: '(Tensor x, Tensor? y=None, *, SymInt n=3, float z=1.5, str s="a") -> Tensor',
    optional: "(Tensor? x, SymInt? n=None) -> ()",
    lists: "(SymInt[] x, Tensor[] y, float[]? z=None) -> Tensor[]",
    scalars: "(Scalar x, bool b=True) -> (Tensor, SymInt)",
    kinds: '(Tensor x, ScalarType d=float32, Device v="cpu") -> bool',
    maybe: "(Tensor?[] x, float inf=inf) -> Tensor",
}


@pytest.mark.parametrize("function", SCHEMAS, ids=lambda f: f.__name__)
def test_inferred(function):
    assert infer_schema(function, mutates_args=()) == SCHEMAS[function]


def written(x: Tensor, n: Optional[Tensor], z: List[Tensor]) -> Tensor: ...


@pytest.mark.parametrize(
    ("names", "schema"),
    [
        ("unknown", "(Tensor(a0!) x, Tensor(a1!)? n, Tensor(a2!)[] z) -> Tensor"),
        (("n",), "(Tensor x, Tensor(a1!)? n, Tensor[] z) -> Tensor"),
        (("z",), "(Tensor x, Tensor? n, Tensor(a2!)[] z) -> Tensor"),
    ],
)
def test_written_arguments(names, schema):
    assert infer_schema(written, mutates_args=names) == schema
    assert infer_schema(written, mutates_args=names, op_name="f") == f"f{schema}"


def untyped(x) -> Tensor: ...


def star(x: Tensor, *args) -> Tensor: ...


def no_result(x: Tensor): ...


def of_dict(x: dict) -> Tensor: ...


def of_tuple(x: Tuple[int, ...]) -> Tensor: ...


def gives_optional(x: Tensor) -> Optional[Tensor]: ...


def list_default(x: Tensor, n: Optional[list[int]] = [1]) -> Tensor: ...  # noqa: B006


@pytest.mark.parametrize(
    ("function", "names", "message"),
    [
        (untyped, (), "Parameter x must have a type annotation"),
        (star, (), "We do not support positional-only args, varargs, or varkwargs"),
        (no_result, (), "No return type annotation was provided"),
        (of_dict, (), "Parameter x has unsupported type <class 'dict'>"),
        (of_tuple, (), "Parameter x has unsupported type"),
        (gives_optional, (), "Return has unsupported type"),
        (list_default, (), "Parameter n has an unsupported default value type <class 'list'>"),
        (written, ("q",), "in mutates_args were not found in the custom op's signature"),
        (written, "x", "mutates_args must either be a sequence"),
        (scalars, ("x",), "only Tensors or collections of Tensors can be mutated"),
    ],
)
def test_refused(function, names, message):
    with pytest.raises(ValueError, match=message):
        infer_schema(function, mutates_args=names)
