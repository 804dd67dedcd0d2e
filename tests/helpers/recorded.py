"""PyTorch's recorded answers to the samples of all families, and the names of its nodes.

tests/oracle/record_operators.py writes both; `make record PARTS=operators` runs it.
"""

from functools import cache

from samples import families

from helpers.answers import beside, load
from helpers.problems import Problem

NODE_NAMES = beside("autograd/test_node_names.py")

FAMILIES = families()
SAMPLES = [(family, sample) for family, samples in FAMILIES.items() for sample in samples]


def path_of(family):
    """The file of the answers to the samples of a family."""
    return beside(f"samples/{family}.py")


@cache
def answers_of(family):
    """The answers to the samples of a family, by the ids of the samples."""
    return load(path_of(family))


@cache
def all_node_names():
    """The names of nodes, by the ids of samples."""
    return load(NODE_NAMES)


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
    answer = answers_of(family).get(sample.id, {}).get(field)
    if answer is None:
        raise LookupError(f"{sample} over the {field} numbers is not recorded: {cure(sample)}")
    return Problem(sample, field, answer)


def node_names(sample):
    """`node_and_next` of PyTorch's outputs, by field. Raises LookupError if not recorded."""
    if sample.id not in all_node_names():
        raise LookupError(f"the node names of {sample} are not recorded: {cure(sample)}")
    return all_node_names()[sample.id]


def name_of_node(node):
    """A node's name without the C++ namespace that PyTorch puts before some; None for None."""
    return None if node is None else node.name().split("::")[-1]


def node_and_next(output):
    """The name of the output's node and those of its `next_functions`; None without a node."""
    if output.grad_fn is None:
        return None
    following = [name_of_node(node) for node, _ in output.grad_fn.next_functions]
    return [name_of_node(output.grad_fn), following]
