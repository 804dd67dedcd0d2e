"""What packages ask before they use torch. Prints what they are told."""

import importlib.metadata
import importlib.util
import json

import torch
import torch.jit
import torch.nn.functional
from torch.autograd import Variable
from torch.jit import Final, is_scripting
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.utils import _pair


def refusal(statement):
    try:
        exec(statement)
    except (AttributeError, ImportError) as error:
        return str(error)


print(
    json.dumps(
        {
            "found": importlib.util.find_spec("torch") is not None,
            "module": importlib.util.find_spec("torch.nn.functional") is not None,
            "missing": importlib.util.find_spec("torch.nothing") is None,
            "distribution": importlib.metadata.version("torch"),
            "version": [torch.__version__, torch.__version__ >= "2.9", torch.version.cuda],
            "same": torch.nn.functional is __import__("jaxgrad").nn.functional,
            "variable": Variable is torch.autograd.Variable,
            "layers": [isinstance(torch.nn.Conv2d(1, 1, 1), _ConvNd), _pair(2), is_scripting()],
            "final": repr(Final[int]),
            "from": refusal("from torch import quantize_per_tensor"),
            "module that is not there": refusal("import torch.nothing"),
            "attribute": refusal("torch.nn.Liner"),
            "mark": refusal("import torch.fx; torch.fx.wrap('len'); torch.fx.Tracer"),
        }
    )
)
