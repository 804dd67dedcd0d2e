"""What packages ask before they use torch. Prints what they are told."""

import importlib.metadata
import importlib.util
import json
import os.path
import pickle
import sys

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
    except (AttributeError, ImportError, NotImplementedError) as error:
        return str(error)


def starred(module):
    names = {}
    exec(f"from {module} import *", names)
    return names


def name_of_missing(statement):
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        return error.name


everything = starred("torch")
listed = importlib.metadata.packages_distributions()
spec = importlib.util.find_spec("torch")


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
            "from": refusal("from torch import quantized_gru"),
            "use": refusal("from torch import quantized_gru as q; q(1.0, 1, 0, None)"),
            "module that is not there": refusal("import torch.nothing"),
            "attribute": refusal("torch.nn.Liner"),
            "from a module": refusal("from torch.nn import Liner"),
            "from the compiler": refusal("from torch.jit import nothing"),
            "no module": refusal("import torch.nn.functional.relu"),
            "names": [name_of_missing("import torch.nothing.deeper"), name_of_missing("import no")],
            "star": [
                [name in everything for name in ("zeros", "Tensor", "float32", "pi", "sum")],
                [name in everything for name in ("nn", "random", "copy", "slice", "jit", "linear")],
                len({"Linear", "LSTM", "functional"} & starred("torch.nn").keys()),
                len({"relu", "interpolate", "np"} & starred("torch.nn.functional").keys()),
                len({"svd", "norm"} & starred("torch.linalg").keys()),
            ],
            "listed": [listed["torch"], importlib.metadata.distribution("torch").requires],
            "spec": [spec.name, spec.origin == torch.__file__, torch.__spec__.name],
            "place": os.path.isdir(torch.__path__[0]),
            "modules": [
                sys.modules["torch.nn.functional"] is torch.nn.functional,
                importlib.import_module("torch.nn.modules.linear").Linear is torch.nn.Linear,
                importlib.reload(torch) is torch,
                pickle.loads(b"ctorch.nn.modules.linear\nLinear\n.") is torch.nn.Linear,
                pickle.loads(pickle.dumps([torch.float32, torch]))[1] is torch,
            ],
            "mark": refusal("import torch.fx; torch.fx.wrap('len'); torch.fx.Tracer"),
        }
    )
)
