"""Records the schemas of the operators that programs call as `torch.ops.aten`: their overloads and
defaults, by which the graphs of exported programs write calls.

make record PARTS=aten_schemas
"""

import re
from pathlib import Path

import torch
import torchgen
import yaml

FUNCTIONS = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
SCHEMAS = Path(__file__).parents[2] / "jaxgrad" / "coverage" / "aten_schemas.txt"
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


def main():
    texts = [entry["func"] for entry in yaml.safe_load(FUNCTIONS.read_text())]
    SCHEMAS.write_text("\n".join(sorted(filter(is_kept, texts))) + "\n")


if __name__ == "__main__":
    main()
