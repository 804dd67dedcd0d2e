"""Which names the public modules offer, and the module that declares each object."""

import ast
import importlib
import inspect

import jaxgrad

from ..late import LateModule
from ..names.not_provided import is_placeholder

# An object is declared in the first of these modules that offers it; the others import it.
MODULES = (
    "jaxgrad.ops",
    "jaxgrad",
    "jaxgrad.accelerator",
    "jaxgrad.backends",
    "jaxgrad.backends.cuda",
    "jaxgrad.backends.cudnn",
    "jaxgrad.backends.mkl",
    "jaxgrad.backends.mkldnn",
    "jaxgrad.backends.mps",
    "jaxgrad.backends.openmp",
    "jaxgrad.compat",
    "jaxgrad.compiler",
    "jaxgrad.cpu",
    "jaxgrad.cuda",
    "jaxgrad.cuda.comm",
    "jaxgrad.cuda.graphs",
    "jaxgrad.cuda.nvtx",
    "jaxgrad.cuda.profiler",
    "jaxgrad.distributed",
    "jaxgrad.distributed.device_mesh",
    "jaxgrad.distributed.tensor",
    "jaxgrad.distributed.tensor.parallel",
    "jaxgrad.distributed.fsdp",
    "jaxgrad.distributed.nn.functional",
    "jaxgrad.distributed.checkpoint",
    "jaxgrad.distributed.checkpoint.state_dict",
    "jaxgrad.hub",
    "jaxgrad.mps",
    "jaxgrad.overrides",
    "jaxgrad.mtia",
    "jaxgrad.multiprocessing",
    "jaxgrad.quasirandom",
    "jaxgrad.xpu",
    "jaxgrad.testing",
    "jaxgrad.torch_version",
    "jaxgrad.version",
    "jaxgrad.random",
    "jaxgrad.serialization",
    "jaxgrad.tracing",
    "jaxgrad.nn",
    "jaxgrad.nn.attention",
    "jaxgrad.nn.attention.flex_attention",
    "jaxgrad.nn.functional",
    "jaxgrad.nn.init",
    "jaxgrad.nn.module",
    "jaxgrad.nn.parallel",
    "jaxgrad.nn.parameter",
    "jaxgrad.nn.utils",
    "jaxgrad.nn.utils.parametrizations",
    "jaxgrad.nn.utils.parametrize",
    "jaxgrad.nn.utils.prune",
    "jaxgrad.nn.utils.rnn",
    "jaxgrad.optim",
    "jaxgrad.optim.lr_scheduler",
    "jaxgrad.optim.optimizer",
    "jaxgrad.optim.swa_utils",
    "jaxgrad.autograd",
    "jaxgrad.autograd.anomaly_mode",
    "jaxgrad.autograd.forward_ad",
    "jaxgrad.autograd.function",
    "jaxgrad.autograd.functional",
    "jaxgrad.autograd.grad_mode",
    "jaxgrad.autograd.gradcheck",
    "jaxgrad.autograd.graph",
    "jaxgrad.autograd.profiler",
    "jaxgrad.autograd.profiler_util",
    "jaxgrad.autograd.variable",
    "jaxgrad.func",
    "jaxgrad.distributions",
    "jaxgrad.distributions.constraint_registry",
    "jaxgrad.distributions.constraints",
    "jaxgrad.distributions.distribution",
    "jaxgrad.distributions.kl",
    "jaxgrad.distributions.transforms",
    "jaxgrad.distributions.utils",
    "jaxgrad.export",
    "jaxgrad.masked",
    "jaxgrad.nested",
    "jaxgrad.fft",
    "jaxgrad.linalg",
    "jaxgrad.signal",
    "jaxgrad.signal.windows",
    "jaxgrad.sparse",
    "jaxgrad.library",
    "jaxgrad.special",
    "jaxgrad.amp",
    "jaxgrad.onnx.errors",
    "jaxgrad.onnx",
    "jaxgrad.profiler",
    "jaxgrad.utils",
    "jaxgrad.utils._pytree",
    "jaxgrad.utils.benchmark",
    "jaxgrad.utils.collect_env",
    "jaxgrad.utils.dlpack",
    "jaxgrad.utils.model_zoo",
    "jaxgrad.utils.tensorboard",
    "jaxgrad.utils.checkpoint",
    "jaxgrad.utils.data",
    "jaxgrad.utils.data.dataloader",
    "jaxgrad.utils.data.dataset",
    "jaxgrad.utils.data.distributed",
    "jaxgrad.utils.data.sampler",
    "jaxgrad.utils.hooks",
)


def public_names(module) -> list[str]:
    """The names that a module offers: the names in `dir`, the names that it loads at their first
    use and the names in `__all__`, but no names that it imports for itself.
    """
    tree = ast.parse(inspect.getsource(module))
    imported = {name for statement in tree.body for name in _imported_for_itself(statement)}
    listed = vars(module).get(
        "__all__", ()
    )  # of the module itself: `__getattr__` may have any name
    imported = set() if module is jaxgrad else imported - {*listed}
    later = {*vars(module).get("_LATER", ()), *listed}
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    names = {*dir(module), *later, *classes} - imported
    return sorted(name for name in names if _is_offered(module, name))


def _imported_for_itself(statement):
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return []
    return [a.asname or a.name for a in statement.names if a.asname != a.name]


def _is_offered(module, name):
    if name.startswith("_"):
        return False
    value = getattr(module, name)
    if name.isupper() and not inspect.isclass(value):
        return False  # a constant
    if is_placeholder(value):
        return False
    if isinstance(value, LateModule):
        return False  # another module, for the functions of this one
    return not inspect.ismodule(value) or value.__name__ in MODULES


# Stubs import the classes of these themselves.
SPELLED = ("builtins", "collections", "collections.abc", "typing")


class Homes:
    """The module that declares each public object."""

    def __init__(self, modules=MODULES):
        self.names = {name: public_names(importlib.import_module(name)) for name in modules}
        self.modules: dict[tuple[str, int], str] = {}
        self.classes: dict[type, tuple[str, str]] = {}
        for module, names in self.names.items():
            for name in names:
                value = getattr(importlib.import_module(module), name)
                self.modules.setdefault((name, id(value)), module)
                if inspect.isclass(value) and value.__module__ not in SPELLED:
                    self.classes.setdefault(value, (module, name))
        self.wholes = dict(self.parts_of_classes())

    def parts_of_classes(self):
        """Private classes with the public class that they are a part of."""
        users: dict[type, list[type]] = {}
        for kind in self.classes:
            for base in kind.__mro__[1:]:
                if base.__module__.startswith("jaxgrad") and base not in self.classes:
                    users.setdefault(base, []).append(kind)
        for base, kinds in users.items():
            for whole in kinds:
                if all(issubclass(kind, whole) for kind in kinds):
                    yield base, whole

    def of(self, name, value) -> str:
        return self.modules[name, id(value)]
