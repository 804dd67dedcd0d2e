"""The layout of the checkout: where things are, how large they grow, who may import whom."""

import ast
import functools
import importlib.util
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import walk

pytestmark = pytest.mark.checkout

CHECKOUT = Path(__file__).resolve().parents[2]

# From the ground up: a module imports from its own layer and from the layers before it.
LAYERS = (
    ("cached", "html", "late", "names"),
    ("state",),
    ("table",),
    ("core",),
    ("rules",),
    ("tape",),
    ("storage",),
    ("ops",),
    ("autograd",),
    ("frontend",),
    ("sparse",),
    ("functions",),
    ("capture", "compiled", "draws"),
    (
        *("amp", "distributed", "distributions", "func", "hub", "masked", "nested", "nn"),
        "optim",
        *("serialization", "torch_version", "utils", "version"),
    ),
    (
        *(
            "",
            "__config__",
            "__future__",
            "_C",
            "_VF",
            "_dynamo",
            "_functorch",
            "_higher_order_ops",
            "_inductor",
        ),
        *("_linalg_utils", "_lobpcg", "_native", "_ops", "_refs", "_subclasses"),
        *("_utils_internal", "_vendor", "_vmap_internals"),
        *("_tensor", "_tensor_str", "_utils", "futures"),
        *(
            "accelerator",
            "ao",
            "backends",
            "cli",
            "__main__",
            "compare",
            "compat",
            "compiler",
            "coverage",
            "cpu",
            "doctor",
            "export",
        ),
        *("cuda", "fft", "functional", "fx", "library", "linalg", "mps", "mtia"),
        *("multiprocessing", "onnx", "overrides", "platforms", "profiler", "quasirandom", "random"),
        "quantization",
        "scripting",
        *("return_types", "signal", "special", "stubs", "testing", "tracing", "types"),
        "xpu",
    ),
)

# the longest chain of modules that import one another, as `make walk` counts it
DEEPEST_IMPORTS = 25
# modules that import each other at their first use: kernels, of the host and of XLA, run programs,
# which are compiled into kernels; a graph that is read from a file traces the code in the file
LATE_CYCLES = (
    (
        *("core.communication", "core.derivative_rules", "core.executor", "core.host_kernel"),
        *("core.primitive", "core.program", "core.tangent_map", "core.template_store"),
        *("core.templates", "core.view_ops"),
    ),
    ("fx._symbolic_trace", "fx.graph_module"),
)

MOST_LINES_OF_A_FUNCTION = 40
DEEPEST_NESTING = 3

PRONOUNS = {"each", "found", "made", "given"}
UNWELCOME = re.compile(
    r"jax\._src|\b_?c?[pP]ickle(?:tools)?\.\w|\bmarshal\b|\bshelve\b"
    r"|(?<!def )\beval\((?!\))|\bexec\("
    r"|^\s*(?:import|from)\b.*\b(?:_?pickle|pickletools|dill|cloudpickle|joblib)\b"
    r"|\byaml\.load\(|(?<!def )__reduce|\bnp\.load\(|\ballow_pickle\b"
)

WELCOME = {
    # the types of errors that programs catch, and nothing that loads what the module loads
    ("jaxgrad.serialization._refused", "from pickle import PicklingError, UnpicklingError"),
    # what the user asks for by weights_only=False
    ("jaxgrad.serialization._unpickler", "import pickle"),
    ("jaxgrad.serialization._unpickler", "class Unpickler(Reading, pickle.Unpickler):"),
    # what is saved says how it is made
    (
        "jaxgrad.serialization._encoder",
        "            parts = reduce(value) if reduce else value.__reduce_ex__(2)",
    ),
    (
        "jaxgrad.serialization._encoder",
        "        is_own = type(value).__reduce_ex__ is Tensor.__reduce_ex__",
    ),
    ("jaxgrad.core.result_tuple", "    kind.__reduce__ = _reduce"),
    # a process gets a tensor as a pickle does
    ("jaxgrad.frontend.sending", "    return tensor.__reduce_ex__(2)"),
    # what a traced function has made says how a copy of it is made
    ("jaxgrad.capture.rebuilt", "        reduced = value.__reduce_ex__(4)"),
    ("jaxgrad.capture.rebuilt", '    names = "__reduce_ex__", "__reduce__"'),
    # the code of a graph, which is written from its nodes
    ("jaxgrad.fx.graph_module", '    exec(compile(src, key, "exec"), globals)'),
    # code that is made of numbers alone
    ("jaxgrad.core.host.steps", '    exec(compile("\\n".join(lines), "<block>", "exec"), scope)'),
}

# by these a file could choose what is called
LOOKS_UP = re.compile(r"\bimportlib\b|__import__|\bsys\.modules\b|\bglobals\(|(?<!\.)\bcompile\(")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom
Block = ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match


def modules():
    """The path of every installed module, by its dotted name."""
    paths = {}
    for folder, package in (("jaxgrad", "jaxgrad"), ("rules", "jaxgrad.rules")):
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            parts = path.relative_to(CHECKOUT / folder).with_suffix("").parts
            name = ".".join((package, *parts))
            paths[name.removesuffix(".__init__")] = path
    return paths


MODULES = modules()
TEST_FILES, DOCS_FILES = (
    {str(path.relative_to(CHECKOUT)): path for path in sorted(CHECKOUT.glob(f"{folder}/**/*.py"))}
    for folder in ("tests", "docs")
)


@functools.cache
def parse(path):
    return ast.parse(path.read_text(), path)


def late_module(node):
    """The module that a call of LateModule names, or None for another node."""
    function = getattr(node, "func", None)
    is_late = "LateModule" in (getattr(function, "id", None), getattr(function, "attr", None))
    return node.args[0].value if is_late else None


def imported_by(name, node, known):
    """The modules of `known` that the import `node` in module `name` names."""
    if isinstance(node, ast.Call):
        return [late_module(node)] if late_module(node) in known else []
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in known]
    origin = node.module or ""
    if node.level:
        package = name if known[name].name == "__init__.py" else name.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        origin = ".".join((*above, *filter(None, [origin])))
    wholes = (f"{origin}.{alias.name}" for alias in node.names)
    return [whole if whole in known else origin for whole in wholes if origin in known]


def layer(module):
    """The position in LAYERS of a module, which is that of its package."""
    package = module.split(".")[1] if "." in module else ""
    for position, packages in enumerate(LAYERS):
        if package in packages:
            return position
    raise LookupError(f"give the package of {module} its place in LAYERS")


def imports_upward(name, tree, known):
    nodes = [node for node in ast.walk(tree) if isinstance(node, Import | ast.Call)]
    return [
        f"line {node.lineno}: {name} imports {other}"
        for node in nodes
        for other in imported_by(name, node, known)
        if layer(other) > layer(name)
    ]


def imports_inside_functions(tree):
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    return [
        f"line {inner.lineno}: {outer.name} imports"
        for outer in functions
        for inner in ast.walk(outer)
        if isinstance(inner, Import)
    ]


def length(function):
    """The lines of its body without the docstring: neither a signature with a parameter per line
    nor an example that runs makes a function harder to read."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def nesting(node):
    """How many blocks are open at the deepest statement, inner functions left out."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef | ast.Lambda):
            continue
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        opens = isinstance(child, Block) and not is_elif
        deepest = max(deepest, opens + nesting(child))
    return deepest


def test_packages_are_the_folders():
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    packages = [name for name, path in MODULES.items() if path.name == "__init__.py"]
    assert sorted(packages) == declared["tool"]["setuptools"]["packages"]


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in MODULES.values()}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def broken(rule, paths):
    """What a rule says of the files that break it, by their names."""
    complaints = {name: rule(name, path) for name, path in paths.items()}
    return {name: complaint for name, complaint in complaints.items() if complaint}


def test_imports_go_down():
    assert broken(lambda name, path: imports_upward(name, parse(path), MODULES), MODULES) == {}


def missing_late_modules(_, path):
    late = filter(None, map(late_module, ast.walk(parse(path))))
    return [module for module in late if importlib.util.find_spec(module) is None]


def test_imports_have_a_depth_and_no_cycle():
    graph = walk.import_graph()
    assert walk.cycles_of(graph) == []
    path = walk.longest_path(graph)
    assert len(path) <= DEEPEST_IMPORTS, " > ".join(path)


def test_few_modules_import_each_other_late():
    cycles = walk.cycles_of(walk.import_graph(late=True))
    known = [{f"jaxgrad.{module}" for module in cycle} for cycle in LATE_CYCLES]
    assert [cycle for cycle in cycles if {*cycle.split(" + ")} not in known] == []


def test_late_modules_exist():
    assert broken(missing_late_modules, MODULES) == {}


def test_imports_are_at_the_top():
    assert broken(lambda _, path: imports_inside_functions(parse(path)), MODULES) == {}


def large_functions(_, path):
    functions = [node for node in ast.walk(parse(path)) if isinstance(node, Function)]
    return [
        function.name
        for function in functions
        if length(function) > MOST_LINES_OF_A_FUNCTION or nesting(function) > DEEPEST_NESTING
    ]


def test_functions_stay_small():
    assert broken(large_functions, MODULES) == {}


def pronouns(file, path):
    """The names that a file defines and that do not say what they stand for."""
    nodes = [*ast.walk(parse(path))]
    stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    names = [node.id for node in stored if isinstance(node, ast.Name)]
    names += [node.attr for node in stored if isinstance(node, ast.Attribute)]
    names += [node.arg for node in nodes if isinstance(node, ast.arg)]
    names += [node.name for node in nodes if isinstance(node, Function | ast.ClassDef)]
    unclear = PRONOUNS if file in TEST_FILES else PRONOUNS | {"own", "now", "told", "said", "who"}
    return sorted(unclear.intersection(name.strip("_").lower() for name in names))


def test_names_are_the_nouns_of_the_field():
    assert broken(pronouns, MODULES | TEST_FILES | DOCS_FILES) == {}


def unwelcome_lines(name, path):
    lines = enumerate(path.read_text().splitlines(), 1)
    unwelcome = [(number, line) for number, line in lines if UNWELCOME.search(line)]
    return [(number, line) for number, line in unwelcome if (name, line) not in WELCOME]


def test_nothing_unwelcome():
    assert broken(unwelcome_lines, MODULES) == {}


def test_reading_a_file_looks_up_no_names():
    """But for what the user asks for by weights_only=False; a name that is written is looked up."""
    others = ("jaxgrad.serialization._unpickler", "jaxgrad.serialization._encoder")
    readers = {
        name: path
        for name, path in MODULES.items()
        if "jaxgrad.serialization" in name and name not in others
    }
    assert broken(lambda _, path: LOOKS_UP.findall(path.read_text()), readers) == {}


# where the value of a handle is read and set by its slot; other modules call held() and hold()
HANDLES = {
    "tape.tensor",
    "tape.record",
    "storage.alias",
    "storage.commit",
    "compiled.placement",
    "ops.dispatch",
    "ops.inplace",
}


def reads_of_the_slot(name, path):
    attributes = (node for node in ast.walk(parse(path)) if isinstance(node, ast.Attribute))
    is_allowed = name.removeprefix("jaxgrad.") in HANDLES
    return [node.lineno for node in attributes if node.attr == "_raw" and not is_allowed]


def test_the_slot_of_a_handle_is_private():
    assert broken(reads_of_the_slot, MODULES) == {}


# Who reads the slots of a `Tensor`: what keeps its state, and paths on which the call of an
# accessor of tape/tensor.py costs too much. Each says so by a line; no other module uses a slot.
INLINED = {
    "autograd._engine.graph_task",
    "autograd._engine.root_arguments",
    "autograd._function.call",
    "capture.guards",
    "capture.joined_effects",
    "capture.side_effects",
    "compiled.opening",
    "compiled.placement",
    "ops.dispatch",
    "ops.inplace",
    "storage.alias",
    "storage.commit",
    "storage.inplace_check",
    "storage.sole_owner",
    "tape.asked_edge",
    "tape.dual",
    "tape.node",
    "tape.record",
    "tape.sparse_tensor",
    "tape.version_counter",
}
MARK = "# inlined: the accessors of tape/tensor.py"
SLOTS = {"_alias", "_aval", "_counter", "_leaf", "_node", "_nr", "_raw", "_tracked"}
NO_SLOTS = {"jaxgrad.fx.proxy"}  # its `_node` is an attribute of its own


def uses_of_slots(name, path):
    if name == "jaxgrad.tape.tensor" or name in NO_SLOTS or MARK in path.read_text():
        return []
    attributes = (node for node in ast.walk(parse(path)) if isinstance(node, ast.Attribute))
    return [f"line {node.lineno}: {node.attr}" for node in attributes if node.attr in SLOTS]


def test_slots_of_tensors_are_behind_accessors():
    assert broken(uses_of_slots, MODULES) == {}


def test_slots_are_read_where_the_modules_say_so():
    marked = {name for name, path in MODULES.items() if MARK in path.read_text()}
    assert {name.removeprefix("jaxgrad.") for name in marked} == INLINED


def test_the_slots_of_tensors_are_known():
    nodes = ast.walk(parse(MODULES["jaxgrad.tape.tensor"]))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == "Tensor"]
    assigned = [node for node in classes[0].body if isinstance(node, ast.Assign)]
    (slots,) = (n.value for n in assigned if ast.unparse(n.targets[0]) == "__slots__")
    assert {slot.value for slot in slots.elts} - {"__dict__", "__weakref__"} == SLOTS


# Variables of modules that functions assign, and that no traced function reads as a setting: counts
# and locks, what a mechanism has installed, and what shows errors. A setting of users is one of
# tape/settings.py, where a compiled function sees it.
NO_SETTINGS = {
    "autograd._engine.observers": {"started"},
    "compiled.stance": {"current"},  # of `jit` itself, which reads it at each call
    "compiled.verify": {"running"},
    "core.bounded_cache": {"_in_force"},
    "core.deferred": {"mode"},  # who runs operators, not what they give
    "core.device": {"_chosen", "_is_meta_default"},  # in the key of programs
    "core.dtypes": {"default"},  # in the key of programs
    "core.executor": {"_wide_types", "chosen", "observers"},
    "core.fork": {"_refusal", "is_forked"},
    "core.kernel": {"choice", "lock"},
    "core.pending": {"suspended"},
    "core.tracebacks": {"_filters"},
    "core.spread": {"compares_calls"},
    "core.world": {"current", "group"},
    "distributed.debug_level": {"_level"},
    "frontend.generator": {"_chosen"},  # draws guard on the stream
    "frontend.threefry": {"_drawn_by_numpy"},
    "fx._patching": {"CURRENT_PATCHER"},
    "fx._symbolic_trace": {"_is_fx_tracing_flag"},
    "fx.traceback": {"current_meta", "should_preserve_node_meta"},
    "tape.dual_level": {"_was_begun"},
    "tape.handle_lock": {"_helpers", "lock"},
    "tape.interception": {"is_general", "is_noted"},
    "tape.node_annotations": {"observers"},
    "tape.record": {"_plain"},
    "tape.version_counter": {"watching"},
    "tape.sparse_tensor": {"_implementation"},  # set once, by jaxgrad itself
    "utils.data._utils.worker": {"_worker_info"},  # set once, as a worker begins
}


def assigned_globals(name, path):
    nodes = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Global)]
    known = NO_SETTINGS.get(name.removeprefix("jaxgrad."), set())
    return sorted({variable for node in nodes for variable in node.names} - known)


def test_settings_have_one_mechanism():
    assert broken(assigned_globals, MODULES) == {}


def test_the_globals_that_are_no_settings_exist():
    for name, variables in NO_SETTINGS.items():
        nodes = ast.walk(parse(MODULES[f"jaxgrad.{name}"]))
        assigned = {v for node in nodes if isinstance(node, ast.Global) for v in node.names}
        assert variables == assigned, name


# Collections of names that operators of the table have too, and that are others: those of JAX's
# primitives and functions and of Python's special methods, values of arguments, what a namespace
# offers, and the functions that compute what views look like. What is true of an operator is said
# in derivatives.yaml, by its tags.
NO_OPERATORS = {
    # what PyTorch quantizes in graphs, and with a known range
    "ao.quantization.fx.patterns": {"_BOTH", "_SHARED"},
    "ao.quantization.qconfig_mapping": {"FIXED"},
    "autograd._function.linearity": {"PARTS", "TOGETHER"},
    "core.host.cost": {"FREE"},
    "core.host.elementwise": {"DOUBLED", "SIDES", "UFUNCS"},
    "core.host.reductions": {"MONOIDS"},
    "core.host.special": {"FUNCTIONS"},
    "core.host.windows": {"_COMBINING"},
    "core.linear_jaxprs": {"KEEP_ZERO", "OF_FIRST", "SUMS"},
    "table.functions": {"LAX"},
    "utils.summary_cost": {"_MOVES"},
    # of Python
    "names.placeholders": {"_OTHERS"},
    "core.jax_internals": {"_CALCULATING"},
    "fx._codegen": {"_COMPARISONS"},
    "table.tags": {"ARITHMETIC"},
    "tape.drawn_array": {"_name"},
    "tape.symbolic_number": {"_name"},
    # values of `reduce=`
    "rules.histogram": {"FIRST"},
    "rules.scatter_reduce": {"REDUCTIONS"},
    # functions of nn.functional, and how they call operators
    "export._python_calls": {"FUNCTIONAL"},
    # what torch.sparse and torch.special offer
    "sparse": {"__all__"},
    "special": {"ALIASES"},
    # a function for each view
    "core.strides": {"VIEWS"},
}
FEWEST_OPERATORS = 5
OPERATORS = re.compile(r"^(?:- name: |  alias: )([^(\n]*)", re.MULTILINE)


@functools.cache
def operators():
    """The names and aliases of the operators of the table."""
    lines = OPERATORS.findall((CHECKOUT / "derivatives.yaml").read_text())
    return {name.partition(".")[0].strip() for line in lines for name in line.split(",")}


def strings(node):
    """The words of the texts that a literal holds."""
    match node:
        case ast.Constant(str(text)):
            return text.split()
        case ast.Starred(inner):
            return strings(inner)
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [text for item in items for text in strings(item)]
    return []


def is_of_operators(nodes):
    """Whether nodes hold words most of which are names of operators."""
    texts = {text for node in nodes if node is not None for text in strings(node)}
    known = [text for text in texts if text.removesuffix("_") in operators()]
    return len(texts) >= FEWEST_OPERATORS and len(known) > len(texts) / 2


def lists_of_operators(tree):
    """The variables to which statements give collections of names of operators, and the functions
    and classes that have one.
    """
    variables = set()
    for statement in tree.body:
        nodes = [*ast.walk(statement)]
        prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        groups = [[node] for node in nodes if id(node) not in prose]
        for node in nodes:
            groups += [node.keys, node.values] if isinstance(node, ast.Dict) else []
        if any(map(is_of_operators, groups)):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            name = getattr(statement, "name", None)
            variables.add(name or (ast.unparse(targets[0]) if targets[0] else "an expression"))
    return variables


def unknown_lists_of_operators(name, path):
    known = NO_OPERATORS.get(name.removeprefix("jaxgrad."), set())
    return sorted(lists_of_operators(parse(path)) - known)


def test_the_table_alone_says_what_is_true_of_operators():
    assert broken(unknown_lists_of_operators, MODULES) == {}


def test_the_collections_of_other_names_exist():
    for name, variables in NO_OPERATORS.items():
        assert variables == lists_of_operators(parse(MODULES[f"jaxgrad.{name}"])), name


def imported_modules(name, tree):
    """The modules of jaxgrad that the code of a module calls by a name, by that name."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and late_module(node.value):
            modules |= {ast.unparse(target): late_module(node.value) for target in node.targets}
        for alias in node.names if isinstance(node, Import) else ():
            imported = imported_by(name, import_of(node, alias), MODULES)
            if imported and imported[0].endswith(alias.name):
                modules[alias.asname or alias.name] = imported[0]
    return modules


def import_of(node, alias):
    """The import of one of the names that a node imports."""
    if isinstance(node, ast.Import):
        return ast.Import(names=[alias])
    return ast.ImportFrom(module=node.module, names=[alias], level=node.level)


def reached_modules(name, tree):
    """The assignments to variables of other modules, and to entries of theirs."""
    modules = imported_modules(name, tree)
    nodes = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), CHANGES)]
    targets = [node.value if isinstance(node, ast.Subscript) else node for node in nodes]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    setters = [call for call in calls if ast.unparse(call.func) in ("setattr", "delattr")]
    owners = [target.value for target in targets if isinstance(target, ast.Attribute)]
    owners += [call.args[0] for call in setters]
    return sorted(
        f"line {owner.lineno}: of {modules[ast.unparse(owner)]}"
        for owner in owners
        if ast.unparse(owner) in modules
    )


CHANGES = ast.Store | ast.Del


def test_no_module_assigns_variables_of_another():
    assert broken(lambda name, path: reached_modules(name, parse(path)), MODULES) == {}


def hidden_tests(_, path):
    names = Counter(node.name for node in parse(path).body if isinstance(node, Function))
    return [name for name, times in names.items() if times > 1]


def test_no_test_hides_another_of_its_name():
    assert broken(hidden_tests, TEST_FILES) == {}


# The checks above must themselves notice what they are for.

KNOWN = {
    "jaxgrad": Path("jaxgrad/__init__.py"),
    "jaxgrad.table": Path("jaxgrad/table/__init__.py"),
    "jaxgrad.tape": Path("jaxgrad/tape/__init__.py"),
    "jaxgrad.table.loader": Path("jaxgrad/table/loader.py"),
    "jaxgrad.tape.tensor": Path("jaxgrad/tape/tensor.py"),
}


@pytest.mark.parametrize(
    ("name", "line", "goes_up"),
    [
        ("jaxgrad.table.loader", "import jaxgrad.tape.tensor", True),
        ("jaxgrad.table.loader", "from jaxgrad.tape import tensor", True),
        ("jaxgrad.table.loader", "from jaxgrad import Tensor", True),
        ("jaxgrad.table.loader", "from jaxgrad.tape.tensor import Tensor", True),
        ("jaxgrad.table.loader", "from ..tape import tensor", True),
        ("jaxgrad.table.loader", "from ..tape.tensor import Tensor", True),
        ("jaxgrad.table", "from ..tape.tensor import Tensor", True),
        ("jaxgrad.table.loader", "def f():\n    import jaxgrad.tape.tensor", True),
        ("jaxgrad.table.loader", 'tensor = LateModule("jaxgrad.tape.tensor")', True),
        ("jaxgrad.table.loader", 'tensor = late.LateModule("jaxgrad.tape.tensor")', True),
        ("jaxgrad.table", 'loader = LateModule("jaxgrad.table.loader")', False),
        ("jaxgrad.table.loader", "from . import Rule", False),
        ("jaxgrad.table.loader", "import jax", False),
        ("jaxgrad.table", "from .loader import load", False),
        ("jaxgrad.tape.tensor", "from jaxgrad.table.loader import load", False),
        ("jaxgrad.tape.tensor", "from ..table import load", False),
        ("jaxgrad", "from jaxgrad.tape.tensor import Tensor as Tensor", False),
    ],
)
def test_upward_imports_are_found(name, line, goes_up):
    assert bool(imports_upward(name, ast.parse(line), KNOWN)) == goes_up


@pytest.mark.parametrize(
    ("line", "reaches"),
    [
        ("from . import loader\nloader.variable = 1", True),
        ("from . import loader\nloader.variable += 1", True),
        ("from . import loader as reader\ndef f():\n    reader.variable = 1", True),
        ("import jaxgrad.table.loader\njaxgrad.table.loader.variable = 1", True),
        ("from jaxgrad.table import loader\ndel loader.variable", True),
        ("from . import loader\nloader.variable['key'] = 1", True),
        ("from . import loader\nsetattr(loader, name, 1)", True),
        ('loader = LateModule("jaxgrad.table.loader")\nloader.variable = 1', True),
        ("from . import loader\nvariable = loader.variable", False),
        ("from .loader import Loader\nLoader.variable = 1", False),
        ("import sys\nsys.argv = []", False),
    ],
)
def test_assignments_to_other_modules_are_noticed(line, reaches):
    assert bool(reached_modules("jaxgrad.table", ast.parse(line))) == reaches


def test_imports_inside_functions_are_found():
    tree = ast.parse("import a\nclass C:\n    def f(self):\n        if a:\n            import b")
    assert imports_inside_functions(tree) == ["line 5: f imports"]


def test_a_module_without_a_layer_is_found():
    with pytest.raises(LookupError, match="LAYERS"):
        layer("jaxgrad.somewhere")


@pytest.mark.parametrize(
    ("source", "depth"),
    [
        ("def f():\n    return 1", 0),
        ("def f():\n    for a in b:\n        if a:\n            return a", 2),
        ("def f():\n    if a: pass\n    elif b: pass\n    elif c: pass\n    else: pass", 1),
        ("def f():\n    if a:\n        def g():\n            if b: pass", 1),
        ("def f():\n    try:\n        pass\n    except E:\n        if a: pass", 2),
    ],
)
def test_nesting_is_counted(source, depth):
    assert nesting(ast.parse(source).body[0]) == depth


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ('A = ("sin", "cos", "tan", "exp_", "of no operator")', {"A"}),
        ('A = frozenset(["sin", *("cos", "tan"), ("exp", "absolute")])', {"A"}),
        ('A = words("sin cos tan exp log")', {"A"}),
        ('A = {"sin": 1, "cos": 2, "tan": 3, "exp": 4, "log": 5}', {"A"}),
        ('A = {1: "sin", 2: "cos", 3: "tan", 4: "exp", 5: "log"}', {"A"}),
        ('def f(x):\n    return x in ("sin", "cos", "tan", "exp", "log")', {"f"}),
        ('for name in ("sin", "cos", "tan", "exp", "log"):\n    pass', {"name"}),
        ('f(["sin", "cos", "tan", "exp", "log"])', {"an expression"}),
        ('A = ("sin", "cos", "tan", "exp")', set()),
        ('A = ("sin", "cos", "a", "b", "c")', set()),
        ('"""sin cos tan exp log"""', set()),
    ],
)
def test_lists_of_operators_are_noticed(source, variables):
    assert lists_of_operators(ast.parse(source)) == variables


def test_signatures_and_docstrings_do_not_count_as_length():
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1'
    assert length(ast.parse(source).body[0]) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("import pickle", "import os, pickle", "from pickle import loads, UnpicklingError"),
        *("    import _pickle as p", "import dill", "from pickletools import genops"),
        *("return pickle.loads(data)", "np.load(f)", "numpy_load(f, allow_pickle=x)"),
        *("x = eval(y)", "from jax._src import core"),
    ],
)
def test_unwelcome_words_are_found(line):
    assert UNWELCOME.search(line)


@pytest.mark.parametrize(
    "line",
    [
        *("jax.eval_shape(f)", "model.eval()", "def eval(self):", "yaml.load_all"),
        *("self.execute(x)", "# a pickle can run any code", "pickle_module=None"),
    ],
)
def test_welcome_words_pass(line):
    assert not UNWELCOME.search(line)
