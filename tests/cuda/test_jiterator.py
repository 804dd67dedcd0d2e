"""Functions of CUDA's code: they can be made, and their calls raise."""

import pytest

import jaxgrad


def test_functions_of_cuda_code():
    """They can be made, and their calls raise as in PyTorch without a GPU."""
    code = "template <typename T> T scaled(T x, T by) { return x * by; }"
    scaled = jaxgrad.cuda.jiterator._create_jit_fn(code, by=2)
    with pytest.raises(AssertionError, match="Jiterator is only supported on CUDA and ROCm GPUs"):
        scaled(jaxgrad.ones(1))
    with pytest.raises(Exception, match="Couldn't parse code"):
        jaxgrad.cuda.jiterator._create_jit_fn("T scaled(T x)")
