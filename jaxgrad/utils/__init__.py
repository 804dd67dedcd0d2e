"""What PyTorch keeps in torch.utils: for now `hooks`."""

from . import hooks as hooks
