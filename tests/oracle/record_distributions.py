"""Record what PyTorch's distributions give: numbers and gradients of the cases of
distribution_cases.py, and all divergences.

make record PARTS=distributions
"""

import warnings

import torch
from helpers.answers import save
from helpers.distribution_cases import (
    CASES,
    DIVERGENCES,
    RECORDING,
    answers,
    divergence,
    precise_bessel,
    wrong_keys,
)


def all_answers():
    by_case = {}
    for name, case in CASES.items():
        by_case[name] = answers(torch, case)
        for key in wrong_keys(name):
            del by_case[name][key]
    return by_case


def all_divergences():
    registered = torch.distributions.kl._KL_REGISTRY
    pairs = sorted((p.__name__, q.__name__) for p, q in registered)
    return {
        f"{p} {q}": divergence(torch, p, q)
        for p, q in pairs
        if p in DIVERGENCES and q in DIVERGENCES
    }


def main():
    # some of its constants are tensors of the default dtype
    torch.set_default_dtype(torch.float64)
    torch.distributions.von_mises._log_modified_bessel_fn = precise_bessel(torch)
    recorded = {"answers": all_answers(), "divergences": all_divergences()}
    save(RECORDING, recorded, 1e-8, 1e-9)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
