"""The schemas of PyTorch's operators, as its programs read them."""

import jaxgrad as torch

aten = torch.ops.aten


def test_names_and_text():
    schema = aten.add.Tensor._schema
    text = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert str(schema) == text
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    assert (aten.relu.default._schema.name, aten.relu.default._schema.overload_name) == (
        "aten::relu",
        "",
    )
    assert [result.type for result in schema.returns] == ["Tensor"]


def test_arguments():
    first, other, alpha = aten.add.Tensor._schema.arguments
    assert (first.name, first.has_default_value(), first.default_value) == ("self", False, None)
    assert not other.kwarg_only and other.alias_info is None
    assert (alpha.type, alpha.default_value, alpha.kwarg_only) == ("number", 1, True)
    dim = aten.sum.dim_IntList._schema.arguments[1]
    assert (dim.type, dim.N) == ("Optional[List[int]]", 1)
    windows = aten.max_pool2d_with_indices.default._schema.arguments
    assert (windows[1].type, windows[1].N, windows[2].default_value) == ("List[int]", 2, [])
    assert aten.index.Tensor._schema.arguments[1].type == "List[Optional[Tensor]]"


def test_what_an_operator_writes():
    schema = aten.add_.Tensor._schema
    assert schema.is_mutable
    written = schema.arguments[0].alias_info
    assert (written.is_write, written.before_set) == (True, {"a"})
    view = aten.view.default._schema
    assert not view.is_mutable and not view.arguments[0].alias_info.is_write
