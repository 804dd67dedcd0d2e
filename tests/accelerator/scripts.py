"""Ten models trained for three steps, compiled, beside what PyTorch gave in float64; and random
programs of state, compiled and uncompiled.
"""

import itertools
import sys

import jax
import models
from capture import programs
from helpers import answers

from accelerator.parts import Part

NAMES = (
    *("resnet18", "gpt", "bert", "vit", "unet", "lstm_lm", "vae", "dcgan", "seq2seq", "gcn"),
    *models.NAMES,
)


def scripts(part: Part):
    part.result |= {"trained": [], "differences": []}
    for name in dict.fromkeys(NAMES):
        if part.is_over():
            break
        result, _ = models.run(name, mode="compiled")
        wrong = models.differences(answers.load(models.path_of(name)), result)
        part.result["differences"] += [f"{name}: {line}" for line in wrong]
        part.result["trained"].append(name)
        part.write()


def random_programs(part: Part):
    """Compiled programs do what uncompiled ones do, on the same device."""
    part.result |= {"programs": 0, "differences": []}
    for seed in itertools.count():
        if part.is_over():
            break
        try:
            programs.check_seed(seed)
        except AssertionError as error:
            part.result["differences"].append(str(error))
        part.result["programs"] += 1
        part.write()


if __name__ == "__main__":
    jax.devices()  # fails here, with its own message, where the driver does
    part = Part(*sys.argv[1:])
    {"scripts": scripts, "programs": random_programs}[part.name](part)
