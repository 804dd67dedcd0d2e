"""Parallel training as functions of modules, as torch.distributed._composable."""
