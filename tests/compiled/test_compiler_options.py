"""What XLA is told of programs on CPUs."""

import re

import jax
import jax.numpy as jnp
import pytest
from helpers.checks import count

import jaxgrad as torch
from jaxgrad.compiled.compiler_options import options_for
from jaxgrad.nn.functional import conv2d, conv_transpose2d


@pytest.mark.parametrize("convolve", [conv2d, conv_transpose2d])
def test_both_gradients_of_a_convolution_share_the_gradient_of_its_result(convolve):
    x = torch.randn(4, 8, 16, 16, requires_grad=True)
    w = torch.randn(8, 8, 3, 3, requires_grad=True)
    scale = torch.randn(8, 1, 1)

    @torch.jit
    def step(shift):
        y = convolve(x, w)
        (y * scale + shift).square().sum().backward()
        return x.grad, w.grad

    text = step.lower(torch.randn(1)).compile().as_text()
    images = r"f32\[\d+,\d+,\d+,\d+\]\S* multiply\("
    products = re.findall(images + r'.*op_name="[^"]*/MulBackward0/[^"]*"', text)
    assert len(products) == 1, products
    of_input, of_weight = step(torch.zeros(1))

    def loss(x, w):
        if convolve is conv_transpose2d:
            w, edges = w[:, :, ::-1, ::-1].swapaxes(0, 1), [(2, 2), (2, 2)]
        else:
            edges = "VALID"
        y = jax.lax.conv_general_dilated(x, w, (1, 1), edges, precision="highest")
        return jnp.square(y * scale.numpy()).sum()

    expected = jax.grad(loss, (0, 1))(x.detach().numpy(), w.detach().numpy())
    for gradient, other in zip((of_input, of_weight), expected, strict=True):
        assert jnp.allclose(gradient.numpy(), other, rtol=1e-4, atol=1e-4 * abs(other).max())
    count("programs")


@pytest.mark.parametrize(
    ("channels", "groups", "are_by_ynn"), [(6, 1, False), (6, 6, False), (6, 2, True)]
)
def test_products_of_a_layer_in_groups_of_several_channels(channels, groups, are_by_ynn):
    """They are by YNN, but convolutions are by Eigen; within a branch, as for CPUs, too."""
    x, w = jnp.ones((2, channels, 5)), jnp.ones((12, channels // groups, 2))

    def convolution(x, w):
        return jax.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=groups)

    def program(x, w):
        return jax.lax.platform_dependent(x, w, default=convolution)

    options = options_for(jax.make_jaxpr(program)(x, w).jaxpr)
    by_ynn = options["xla_cpu_experimental_ynn_fusion_type"]
    assert ("DOT" in by_ynn, "CONVOLUTION" in by_ynn, "REDUCE" in by_ynn) == (
        are_by_ynn,
        False,
        True,
    )
    result = jax.jit(program, compiler_options=options)(x, w)
    assert (result == 2 * channels // groups).all()


def test_a_program_without_convolutions_has_no_options():
    program = jax.make_jaxpr(lambda x: jnp.einsum("ij,kj->ik", x, x))(jnp.ones((2, 3)))
    assert options_for(program.jaxpr) is None


def test_a_program_that_convolves_and_writes():
    """It keeps what protects writes: XLA knows both passes, and gives YNN nothing."""
    x, w = jnp.arange(6.0).reshape(1, 1, 6), jnp.ones((1, 1, 3))

    def program(x, w):
        y = jax.lax.conv_general_dilated(x, w, (1,), "VALID")
        return x.at[:, :, 1:3].set(y[:, :, :2] * x[:, :, 4:])

    options = options_for(jax.make_jaxpr(program)(x, w).jaxpr)
    result = jax.jit(program, compiler_options=options)(x, w)
    assert result.tolist() == [[[0, 12, 30, 3, 4, 5]]]
    assert "ynn" not in jax.jit(program, compiler_options=options).lower(x, w).compile().as_text()
