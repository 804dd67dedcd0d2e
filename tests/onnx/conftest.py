"""The converter is an optional package, with an environment of its own: `make onnx`."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("jax2onnx") is None:
    collect_ignore += ["test_expressed.py", "test_exporter.py", "test_program.py"]
