"""Records how PyTorch's own parser reads ATen schemas.

make record PARTS=schemas
"""

from pathlib import Path

import torchgen
import yaml
from helpers.answers import beside, save
from torchgen.model import FunctionSchema

FUNCTIONS = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
FOREIGN = ("DeviceIndex", "Storage", "SymBool", "QScheme", "Stream", "Dimname", "__")


def argument(schema, parameter):
    """An argument's name, which of these words are true of it, and its default."""
    words = {
        "tensor": parameter.type.is_tensor_like(),
        "list": bool(parameter.type.is_list_like()),
        "nullable": parameter.type.is_nullable(),
        "keyword_only": parameter in (*schema.arguments.flat_kwarg_only, *schema.arguments.out),
        "written": bool(parameter.annotation and parameter.annotation.is_write),
    }
    return [parameter.name, [word for word, true in words.items() if true], parameter.default]


def describe(text):
    schema = FunctionSchema.parse(text)
    return {
        "text": text,
        "name": str(schema.name),
        "inplace": schema.kind().name == "inplace",
        "arguments": [argument(schema, parameter) for parameter in schema.arguments.flat_all],
        "returns": [[output.name, output.type.is_tensor_like()] for output in schema.returns],
    }


def main():
    texts = [entry["func"] for entry in yaml.safe_load(FUNCTIONS.read_text())]
    texts = [text for text in texts if not any(word in text for word in FOREIGN)]
    descriptions = [describe(text) for text in texts[::17]]
    save(beside("table/test_schema.py"), descriptions)


if __name__ == "__main__":
    main()
