"""Layers that call one function: its parameters are their options and their inputs."""

from ..ops.documentation import public_name, python_type
from .annotations import Types
from .functions import Functions, signature_of
from .operators import listed, result_of, schemas_of


def option_kinds(layer: type, types_: Types) -> dict[str, str]:
    """The type of each option of a layer, as its function takes it."""
    function = layer.function
    if hasattr(function, "operator"):
        (schema, *_) = schemas_of(function)
        kinds = {public_name(a): types_.spelled(python_type(a.type)) for a in schema.arguments}
    else:
        functions = Functions(types_)
        parameters = signature_of(function).parameters
        kinds = {name: functions.kind_of(parameter) for name, parameter in parameters.items()}
    return {name: kinds[name] for name in layer._names if name in kinds}


def forward_line(layer: type, types_: Types) -> str:
    """`forward`, which takes what the function takes besides the options."""
    function = layer.function
    if hasattr(function, "operator"):
        (schema, *_) = schemas_of(function)
        inputs = listed([a for a in schema.arguments if public_name(a) not in layer._names])
        inputs, result = map(types_.spelled, inputs), types_.spelled(result_of(schema))
    else:
        functions, signature = Functions(types_), signature_of(function)
        parameters = signature.parameters.values()
        others = [p for p in parameters if p.name not in layer._names]
        inputs = functions.parameters(signature.replace(parameters=others))
        result = functions.returned(function, signature, function.__name__)
    return f"def forward(self, {', '.join(inputs)}) -> {result}: ..."
