"""Records the names of PyTorch's nodes for the samples of operators, in node_names.json.

python tests/oracle/record_node_names.py     (needs torch 2.13)

A line is a sample: for each field of numbers and each output the name of its node, and those of the
nodes of its `next_functions`; null where there is none.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from autograd.test_node_names import RECORDING, described
from oracle.record_operators import run
from samples import STAND_INS, families


def main():
    warnings.simplefilter("ignore")
    STAND_INS.pop("as_strided_scatter")  # its own derivative is wrong, and its node's name is right
    lines = []
    for sample in (sample for samples in families().values() for sample in samples):
        told = {field: described(run(sample, sample.draw(field))[1]) for field in sample.fields}
        lines.append(f"{json.dumps(sample.id)}: {json.dumps(told)}")
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
