"""Every operator, in value, gradient, tangent and second derivatives, is lowered for GPUs and TPUs,
by itself and inside of a shard_map.

`make test` takes every 24th operator, and one of 24 parts of those in other dtypes.
"""

import jax
import jax.numpy as jnp
import pytest
from helpers import lowering
from helpers.problems import Problem

from jaxgrad import platforms
from jaxgrad.ops import cards

PROBLEMS: dict[str, Problem] = lowering.first_problems()
WITHOUT_KERNEL = "linalg.eig", "linalg.eigvals"  # on TPUs
# inside of a shard_map, the kernel of TPUs is in a loop that JAX refuses
BY_SVD = (
    *("svd", "linalg.svd", "linalg.svdvals", "linalg.pinv", "pinverse", "linalg.cond"),
    *("linalg.lstsq", "linalg.matrix_norm", "linalg.matrix_rank", "nuclear_norm"),
)
PARTS = 24
# how an operator refuses a dtype
REFUSALS = NotImplementedError, RuntimeError, TypeError, ValueError

# the warning of a mean in kl_div, as PyTorch's; discarded imaginary parts
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def programs(problem, dtype):
    """The function of the value, and of the derivatives where there are some, with its arrays."""
    yield lowering.value(problem, dtype)
    if problem.moving and problem.differentiable and dtype != jnp.int8:
        yield lowering.derivatives(problem, dtype)


def with_marks(names, step):
    return [
        pytest.param(name, marks=[pytest.mark.slow] if number % step else [])
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    "name", with_marks([name for name in PROBLEMS if name not in WITHOUT_KERNEL], 24)
)
def test_float32(name):
    for function, arrays in programs(PROBLEMS[name], jnp.float32):
        text = lowering.lower(function, *arrays).as_text()
        assert "callback" not in text
        assert "func.func public @main" in text


def without_samples():
    """The operators of the table that only other operators call."""
    names = {name.rpartition(".")[2] for name in PROBLEMS}
    names |= {name.removeprefix("nn.functional.").replace(".", "_") for name in PROBLEMS}
    return sorted({*cards.names()} - names)


def test_every_operator_is_lowered():
    assert "_rounded_view" in without_samples()
    assert not {"sin", "linalg_inv", "sort"} & {*without_samples()}


@pytest.mark.parametrize("part", with_marks(range(10), 10))
def test_operators_without_samples(part):
    """The value and the gradient of the example in the table, forward mode and second order."""
    for name in without_samples()[part::10]:
        for platform, lowered in platforms.row(name).items():
            assert not (lowered.error or lowered.calls_back), (name, platform)
        for call in platforms.calls_of(name):
            if any(call.tracked) and call.differentiable_outputs:
                with jax.enable_x64(True):
                    function, arrays = lowering.derivatives_of_call(call)
                assert "callback" not in lowering.lower(function, *arrays).as_text(), name


@pytest.mark.parametrize("name", WITHOUT_KERNEL)
def test_operators_without_a_kernel(name):
    for function, arrays in programs(PROBLEMS[name], jnp.float32):
        lowering.lower(function, *arrays, platforms=("cuda", "rocm"))
        with pytest.raises(NotImplementedError, match=r"linalg\.eig.* platform tpu: .*\.cpu\(\)"):
            lowering.lower(function, *arrays, platforms=("tpu",))


def on_a_mesh(function, arrays):
    """A function inside of a shard_map that checks which arrays vary over its devices, and the
    arrays, divided among the devices.
    """
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    parts = jax.sharding.PartitionSpec("x")

    def inside(*arrays):
        return jax.tree.map(lambda x: x[None], function(*(x[0] for x in arrays)))

    mapped = jax.shard_map(inside, mesh=mesh, in_specs=parts, out_specs=parts, check_vma=True)
    with jax.enable_x64(True):
        return mapped, [jnp.asarray(array)[None] for array in arrays]


@pytest.mark.parametrize(
    "name", with_marks([name for name in PROBLEMS if name not in WITHOUT_KERNEL], 24)
)
def test_inside_a_shard_map(name):
    for function, arrays in programs(PROBLEMS[name], jnp.float32):
        mapped, arrays = on_a_mesh(function, arrays)
        if name not in BY_SVD:
            lowering.lower(mapped, *arrays)
            continue
        lowering.lower(mapped, *arrays, platforms=("cuda", "rocm"))
        with pytest.raises(NotImplementedError, match=r"linalg\.svd.* tpu: .*check_vma=False"):
            lowering.lower(mapped, *arrays, platforms=("tpu",))


def lowered_in(dtype, names):
    """Which of the operators take a dtype, all of whose programs are lowered."""
    takers = []
    for name in names:
        with jax.enable_x64(True):
            try:
                traced = [jax.jit(f).trace(*a) for f, a in programs(PROBLEMS[name], dtype)]
            except REFUSALS:
                continue
            for program in traced:
                program.lower(lowering_platforms=lowering.PLATFORMS)
        takers.append(name)
    return takers


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int8])
@pytest.mark.parametrize("part", with_marks(range(PARTS), PARTS))
def test_narrow_dtypes(dtype, part):
    names = [name for name in list(PROBLEMS)[part::PARTS] if name not in WITHOUT_KERNEL]
    takers = lowered_in(dtype, names)
    assert len(takers) > len(names) * (0.5 if dtype == jnp.int8 else 0.7)
