"""PyTorch's recorded answers to the samples of all families, and the names of its nodes.

tests/oracle/record_operators.py writes both; `make record` runs it.
"""

import json
from pathlib import Path

from problems import Problem
from samples import families

ORACLE = Path(__file__).parent / "oracle"
ANSWERS = ORACLE / "operators"
NODE_NAMES = ORACLE / "node_names.json"

FAMILIES = families()
SAMPLES = [(family, sample) for family, samples in FAMILIES.items() for sample in samples]


def load(path):
    """The recording in a file, by the ids of samples; empty if there is no such file."""
    return json.loads(path.read_text()) if path.exists() else {}


RECORDED = {family: load(ANSWERS / f"{family}.json") for family in FAMILIES}
RECORDED_NAMES = load(NODE_NAMES)


def cure(*samples):
    """The command that records what PyTorch answers to some samples."""
    operators = dict.fromkeys(sample.operator for sample in samples)
    return f'run make record OPERATORS="{" ".join(operators)}"'


def check_complete(recording, samples):
    """Fails unless the recording has exactly these samples, in their order."""
    missing = [sample for sample in samples if sample.id not in recording]
    assert not missing, f"{missing} not recorded: {cure(*missing)}"
    assert list(recording) == [sample.id for sample in samples], "run make record"


def problem(family, sample, field):
    """The sample over one of its fields. Raises LookupError if the answer is not recorded."""
    answer = RECORDED[family].get(sample.id, {}).get(field)
    if answer is None:
        raise LookupError(f"{sample} over the {field} numbers is not recorded: {cure(sample)}")
    return Problem(sample, field, answer)


def node_names(sample):
    """`node_and_next` of PyTorch's outputs, by field. Raises LookupError if not recorded."""
    if sample.id not in RECORDED_NAMES:
        raise LookupError(f"the node names of {sample} are not recorded: {cure(sample)}")
    return RECORDED_NAMES[sample.id]


def name_of_node(node):
    """A node's name without the C++ namespace that PyTorch puts before some; None for None."""
    return None if node is None else node.name().split("::")[-1]


def node_and_next(output):
    """The name of the output's node and those of its `next_functions`; None without a node."""
    if output.grad_fn is None:
        return None
    following = [name_of_node(node) for node, _ in output.grad_fn.next_functions]
    return [name_of_node(output.grad_fn), following]
