"""Record what PyTorch's SummaryWriter writes.

make record PARTS=tensorboard
"""

import tempfile
from pathlib import Path

import torch
from helpers.answers import beside, save
from helpers.tensorboard_calls import read, write
from torch.utils.tensorboard import SummaryWriter

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(torch, SummaryWriter, folder)
        files = read(Path(folder))
    save(beside("utils/test_tensorboard.py"), files, 1e-7)
