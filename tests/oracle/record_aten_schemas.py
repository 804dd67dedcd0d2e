"""Records the schemas of the operators that programs call as `torch.ops.aten`: their overloads and
defaults, by which the graphs of exported programs write calls; and the names of all operators there
with those of their overloads.

make record PARTS=aten_schemas
"""

import re
from pathlib import Path

import torch
import torchgen
import yaml

FUNCTIONS = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
COVERAGE = Path(__file__).parents[2] / "jaxgrad" / "coverage"
SCHEMAS, NAMES = COVERAGE / "aten_schemas.txt", COVERAGE / "aten_names.txt"
# made by PyTorch's generator from the entries of its table, and written by `run_decompositions`
GENERATED = [torch.ops.aten._native_batch_norm_legit_functional.default]
# operators of backends, of other layouts and of gradients; overloads with `out` or names
FOREIGN = re.compile(
    r"^(_|mkldnn|cudnn|miopen|fbgemm|quantized|sparse|to_mkldnn|xnn|mps|nested)"
    r"|backward|__|SymBool|^\w+\.(\w*_)?out\b|Dimname|Storage|Stream|QScheme|\*, Tensor\(a!\)"
)
# of those with an underscore what `run_decompositions` writes
CORE = re.compile(
    r"_(softmax|log_softmax|safe_softmax|to_copy|adaptive_avg_pool[23]d|unsafe_view"
    r"|native_batch_norm_legit(_functional|_no_training)?)(\.no_stats)?\("
)


def is_kept(text):
    name = re.match(r"\w+", text)[0]
    if CORE.match(text):
        return True
    # what Python calls by another overload, as PyTorch's generator of its bindings has it
    is_hidden = re.match(
        r"(add|sub|mul|div|floor_divide|true_divide|divide|multiply|subtract)_?\.Scalar", text
    )
    return not FOREIGN.search(text) and not is_hidden and hasattr(torch.ops.aten, name)


def names() -> list[str]:
    """Lines such as `add Scalar Tensor out`."""
    schemas = [schema.name.partition("::") for schema in torch._C._jit_get_all_schemas()]
    known = sorted({name for namespace, _, name in schemas if namespace == "aten"})
    return [" ".join([name, *getattr(torch.ops.aten, name).overloads()]) for name in known]


def main():
    texts = [entry["func"] for entry in yaml.safe_load(FUNCTIONS.read_text())]
    texts += [str(overload._schema).removeprefix("aten::") for overload in GENERATED]
    SCHEMAS.write_text("\n".join(sorted(filter(is_kept, texts))) + "\n")
    NAMES.write_text("\n".join(names()) + "\n")


if __name__ == "__main__":
    main()
