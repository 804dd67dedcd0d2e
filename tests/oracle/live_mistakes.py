"""Mistakes of users, a call a line: what raises in PyTorch raises here, with an error of that kind.

make oracle ARGUMENTS=mistakes     (`--seed N` draws the numbers of an earlier run)

`mistakes/calls.txt` has the calls, by kind, and `mistakes/setup.txt` the names that they use.
"""

import pickle
import warnings
from pathlib import Path

import pytest
import torch
from oracle.seed import SEED

import jaxgrad

FOLDER = Path(__file__).parent / "mistakes"
CALLS = dict(line.split(": ", 1) for line in (FOLDER / "calls.txt").read_text().splitlines())

# docs/conventions.md, or the comment, says why
BETTER_HERE = {
    # these calls are right here
    *("numpy_cj", "numpy_bf", "fromnp_neg", "dtype_np", "to_np", "mod_np", "ex_nt", "gen"),
    *("fn_jvp", "fn_vmap", "fn_grad", "cuda_str", "l_nan", "n_emb_np", "n_ce_np", "n_np_add"),
    *("n_np_mean", "n_np_dtype_np", "n_cat_mix", "n_dev_cudagen", "n_exp_fn", "n_fsdp", "n_ck_seq"),
    # the saved value is used, as it was
    "ip_saved",
    # PyTorch takes these, and does not use a part of the arguments, or fails later
    *("grad_outs", "hook_none", "pt", "sp1", "sdpa_c", "n_lstm_packlen", "n_np_float_idx"),
    *("n_dl_rsneg", "n_mm_meta"),
    # an error of a clearer kind
    *("mse_list", "hess", "unfold", "bnot", "q_add", "mps", "cuda_set", "cuda_ev", "c_back"),
    *("dist_no", "dist_all", "l_map", "l_txt", "n_bcel_str", "n_ag_str", "n_dev_cudaT", "n_dl_tds"),
    *("n_mod_param_str", "n_mod_param_list", "n_exp_mod_dt", "n_jit_trstr", "n_dist_destroy"),
    "n_vmap_bw",
}


def kind(error):
    """The first class of Python's library or of pickle that an error is of."""
    return next(base for base in type(error).__mro__ if base.__module__ in ("builtins", "_pickle"))


def outcome(library, call):
    import copy
    import io

    import numpy

    names = {"torch": library, "np": numpy, "io": io, "copy": copy, "pickle": pickle}
    with warnings.catch_warnings(action="ignore"):
        library.manual_seed(SEED)
        library.set_autocast_enabled("cpu", False)  # an earlier mistake may have left it on
        # PyTorch's compiler turns it off for good
        library.distributions.Distribution.set_default_validate_args(True)
        exec((FOLDER / "setup.txt").read_text(), names)
        try:
            eval(call, names)
        except Exception as error:
            return error
    return None


@pytest.mark.parametrize("name", [name for name in CALLS if name not in BETTER_HERE])
def test_mistake(name):
    expected = outcome(torch, CALLS[name])
    actual = outcome(jaxgrad, CALLS[name])
    if expected is None:
        assert actual is None, actual
    else:
        assert isinstance(actual, kind(expected)), (expected, actual)
        assert str(actual), "an error says what is wrong"
