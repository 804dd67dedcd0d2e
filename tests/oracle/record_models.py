"""Train the models of tests/models with PyTorch, and record what they learn.

make record PARTS=models
"""

import models
from helpers.answers import save


def main():
    for name in models.NAMES:
        result, _ = models.run(name, "torch")
        save(models.path_of(name), result, 1e-8, 1e-12)


if __name__ == "__main__":
    main()
