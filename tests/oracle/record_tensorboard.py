"""Record what PyTorch's SummaryWriter writes, in tensorboard.json.

python tests/oracle/record_tensorboard.py     (needs torch 2.13, tensorboard and pillow)
"""

import json
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import torch  # noqa: E402
from tensorboard_calls import read, write  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(torch, SummaryWriter, folder)
        found = read(Path(folder))
    lines = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in found.items())
    (TESTS / "oracle" / "tensorboard.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
