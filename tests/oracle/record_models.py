"""Train the models of tests/models with PyTorch, and record what they learn.

python tests/oracle/record_models.py gpt vae     (all models without names; needs torch 2.13)
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import models


def main(names):
    models.RECORDINGS.mkdir(exist_ok=True)
    for name in names or models.NAMES:
        found, _ = models.run(name, "torch")
        lines = (f" {json.dumps(part)}: {json.dumps(found[part])}" for part in found)
        (models.RECORDINGS / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
