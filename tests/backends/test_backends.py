"""torch.backends: what programs ask of PyTorch's libraries."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch
from jaxgrad.tape import settings


@as_torch("""
    [True, False, 1, False]
    [False, False]
    ['Default', 'Cublas']
    RuntimeError(
     'Cannot set preferred backend to MAGMA if PyTorch has not been compiled with MAGMA.')
    RuntimeError('Unknown input value. Choose from: default, cusolver, magma.')
""")
def test_settings_and_libraries(torch):
    cuda, mha = torch.backends.cuda, torch.backends.mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    changed = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(True)
    return [
        [before, changed, torch.backends.mkl.VERBOSE_ON, torch.backends.cusparselt.is_available()],
        [cuda.fp16_bf16_reduction_math_sdp_allowed(), cuda.is_flash_attention_available()],
        [cuda.preferred_linalg_library().name, cuda.preferred_blas_library().name],
        error(cuda.preferred_linalg_library, "magma", words="Cannot set preferred backend to"),
        error(
            cuda.preferred_linalg_library, "x", words="Unknown input value. Choose from: default"
        ),
    ]


@pytest.mark.parametrize("name", ["nnpack", "kleidiai", "cusparselt", "mkl", "openmp"])
def test_libraries_that_are_not_used(name):
    assert getattr(torch.backends, name).is_available() is False


def test_attention_in_half_precision_keeps_what_is_set():
    cuda = torch.backends.cuda
    cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        assert cuda.fp16_bf16_reduction_math_sdp_allowed()
    finally:
        cuda.allow_fp16_bf16_reduction_math_sdp(False)


@as_torch
def test_flags_that_are_frozen(torch):
    backends = torch.backends
    flags = [(backends.cudnn, "benchmark"), (backends.mkldnn, "enabled")]
    before = backends.flags_frozen()
    backends.disable_global_flags()
    try:
        results = [error(setattr, *flag, True, words="not allowed to set") for flag in flags]
        with backends.cudnn.flags(benchmark=True), backends.mkldnn.flags(enabled=False):
            inside = [backends.cudnn.benchmark, backends.cudnn.enabled, backends.mkldnn.enabled]
        backends.opt_einsum.enabled = True
        return [before, backends.flags_frozen(), results, inside, backends.cudnn.benchmark]
    finally:
        thaw(torch)


def thaw(framework):
    """PyTorch has no way to undo `disable_global_flags` but its variable."""
    if framework is torch:
        settings.put("flags_are_frozen", False)
    else:
        framework.backends.__allow_nonbracketed_mutation_flag = True
