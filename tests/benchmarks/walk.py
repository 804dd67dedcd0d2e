"""Counts the files that a reader visits to follow a call, and the depth of imports: `make walk`.

For each call: its files (those of jaxgrad in which a function runs), its entries (calls that lead
from one file into another; code of JAX in between does not count) and its calls (functions of
jaxgrad that run; a comprehension is a part of its function, as Python 3.12 runs it).

In the import graph, an edge leads from a module to each module of jaxgrad that it imports. The
depth is the number of nodes on the longest path. Modules that import each other count as one node,
and are listed. The graph is counted with modules as nodes, where a package's __init__ is one of
them; with the entries of jaxgrad/ as nodes, where a package is one node with all its modules; and
with modules that are imported at their first use as edges too. `make walk ARGUMENTS=--visits` lists
the files.
"""

import argparse
import ast
import functools
import graphlib
import itertools
import sys
from pathlib import Path

import jaxgrad as torch
from jaxgrad import rules

FOLDERS = {"jaxgrad": Path(torch.__file__).parent, "jaxgrad.rules": Path(rules.__file__).parent}
ROOTS = tuple(f"{folder}/" for folder in FOLDERS.values())
LATE = {"LateModule", "import_module"}
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class Visits:
    """The files of jaxgrad that run within `with`, in order, and how many functions they call."""

    def __init__(self):
        self.entered, self.calls, self.stack = [], 0, [None]

    def __enter__(self):
        sys.setprofile(self.notice)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)

    def notice(self, frame, event, argument):
        if event == "call":
            self.call(frame.f_code)
        elif event == "return" and len(self.stack) > 1:
            self.stack.pop()

    def call(self, code):
        """The stack holds, for each frame, the innermost file of jaxgrad at that depth."""
        file = code.co_filename
        if not file.startswith(ROOTS) or code.co_name in COMPREHENSIONS:
            self.stack.append(self.stack[-1])
            return
        self.calls += 1
        if file != self.stack[-1]:
            self.entered.append(file)
        self.stack.append(file)


def short(file):
    """A file's path from the folder that it is installed in."""
    return file.removeprefix(next(root for root in ROOTS if file.startswith(root)))


def report(title, call, warm=100):
    """Prints the counts of a call after some calls to warm up; gives the files it entered."""
    for _ in range(warm):
        call()
    with Visits() as visits:
        call()
    files, entries = len(set(visits.entered)), len(visits.entered)
    print(f"{title:<24}{files:6} files{entries:6} entries{visits.calls:7} calls")
    return [short(file) for file in visits.entered]


# ---- what is called


def trips():
    """The calls that are counted, by title."""
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    a = torch.ones(3)

    def there_and_back():
        x.grad = None
        torch.sum(torch.sin(x)).backward()

    def write_through_a_view():
        base = torch.zeros(3)
        base[1:].add_(1)
        return base.sum()

    def step(a):
        w.grad = None
        loss = (w * a).sin().sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
        return loss

    gradient = torch.func.grad(lambda x: x.sin().sum())
    compiled = torch.jit(step)
    return {
        "sum(sin(x)) and back": there_and_back,
        "sum(sin(x))": lambda: torch.sum(torch.sin(x)),
        "view, write, read": write_through_a_view,
        "func.grad": lambda: gradient(a),
        "compiled step, warm": lambda: compiled(a),
        "compiled step, traced": lambda: torch.jit(step)(a),
    }


# ---- the import graph


def module_files():
    """The file of each module, by its dotted name."""
    files = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            files[".".join((package, *parts)).removesuffix(".__init__")] = path
    return files


def imported(node, package, known):
    """The modules of `known` that an import in a module of `package` names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & known
    above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
    origin = ".".join([*above, *filter(None, [node.module])])
    names = (f"{origin}.{alias.name}" for alias in node.names)
    return {name if name in known else origin for name in names} & known


def imported_late(call, name, package):
    """The module that a call imports, as a text may tell; "" for other calls."""
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    known = {"__name__": name, "__package__": package}
    return text_of(call.args[0], known) if function in LATE and call.args else ""


def text_of(node, known):
    """A text, which may hold names that stand for others; with a "?" for what is not known."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, known)
    if isinstance(node, ast.Name):
        return known.get(node.id, "?")
    return str(node.value) if isinstance(node, ast.Constant) else "?"


def import_graph(late=False):
    """The modules that each module imports; late: those that it imports at their first use too."""
    files, graph = module_files(), {}
    for name, path in files.items():
        package, names = name if path.name == "__init__.py" else name.rpartition(".")[0], set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names |= imported(node, package, files.keys())
            elif late and isinstance(node, ast.Call):
                names.add(imported_late(node, name, package))
        graph[name] = (names & files.keys()) - {name}
    return graph


def merged(graph, node_of):
    """The graph whose nodes are `node_of` of the nodes."""
    edges = {}
    for node, following in graph.items():
        edges.setdefault(node_of(node), set()).update(map(node_of, following))
    return {node: following - {node} for node, following in edges.items()}


def top_level(module):
    return ".".join(module.split(".")[:2])


def without_cycles(graph):
    """The graph with the nodes of each cycle merged into one, whose name is all of theirs."""
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            cycle = set(error.args[1])
            name = " + ".join(sorted(cycle))
            graph = merged(graph, lambda n, cycle=cycle, name=name: name if n in cycle else n)
        else:
            return graph


def longest_path(graph):
    """The longest path of a graph without cycles."""

    @functools.cache
    def down(node):
        return [node, *max(map(down, sorted(graph[node])), key=len, default=[])]

    return max(map(down, sorted(graph)), key=len)


def cycles_of(graph):
    """The nodes of each cycle, as one text."""
    return [node for node in without_cycles(graph) if " + " in node]


def report_depth(title, graph):
    path = longest_path(without_cycles(graph))
    print(f"{title:<24}{len(graph):6} nodes, depth {len(path)}")
    for cycle in cycles_of(graph):
        print(f"    a cycle: {cycle}")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--visits", action="store_true", help="list files and the longest path")
    options = parser.parse_args()
    lists = [report(title, call) for title, call in trips().items()]
    modules = import_graph()
    lists.append(report_depth("imports of packages", merged(modules, top_level)))
    lists.append(report_depth("imports of modules", modules))
    lists.append(report_depth("late imports too", import_graph(late=True)))
    for path in lists if options.visits else ():
        print("\n" + " > ".join(name for name, _ in itertools.groupby(path)))


if __name__ == "__main__":
    main()
