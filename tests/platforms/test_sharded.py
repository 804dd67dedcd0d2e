"""Steps of sharded models on four devices are lowered for GPUs and TPUs, and stay sharded."""

import functools

import pytest
from distributed.processes import printed
from helpers import lowering

PARAMETERS, ARRAYS = 4, 3  # two Linears; a parameter and the two moments of Adam
# arguments and results that are split; with tensor parallelism the last bias is whole
SPLIT = {
    "fsdp": 2 * PARAMETERS * ARRAYS,
    "tensor parallel": 2 * (PARAMETERS - 1) * ARRAYS,
    "redistributed": 1,
}
# three times around four devices, and back in the gradient; two stages
PERMUTATIONS = {"ring attention": 6, "pipeline": 2}


@functools.cache
def programs():
    return printed("../platforms/sharded.py", *lowering.PLATFORMS, devices=4)


@pytest.mark.parametrize("platform", lowering.PLATFORMS)
class TestLowered:
    @pytest.mark.parametrize("name", SPLIT)
    def test_parameters_stay_split(self, name, platform):
        assert programs()[name][platform]["split"] == SPLIT[name]

    def test_the_input_of_a_model_is_split(self, platform):
        assert programs()["data parallel"][platform]["constrained"] == 1

    @pytest.mark.parametrize("name", PERMUTATIONS)
    def test_parts_are_sent(self, name, platform):
        sent = programs()[name][platform]["collectives"]
        assert sent == {"collective_permute": PERMUTATIONS[name]}

    def test_no_program_calls_the_host(self, platform):
        assert not any(program[platform]["callbacks"] for program in programs().values())
