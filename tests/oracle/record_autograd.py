"""Run the bodies of tests that are PyTorch code with PyTorch, and record what they return.

make record PARTS=autograd

A short answer is written into its test, a long one into the file beside it: see as_torch.py.
"""

import ast
import importlib.util
import re
import sys
import warnings

import torch
from helpers import answers, as_torch

MOST_LINES = 8  # of an answer in a test
ROOM = answers.WIDTH - 4
IMPORT = re.compile(r"import (\([^)]*|.*)\b(as_torch|as_recorded)\b")  # in files of such tests


def main():
    warnings.simplefilter("ignore")
    torch.set_warn_always(True)
    for path in sorted(answers.TESTS.rglob("test_*.py")):
        if IMPORT.search(path.read_text()):
            record(path)


def record(path):
    """Ask PyTorch for the answers to the tests of a file, and write them."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module  # where the compiler of PyTorch looks for its globals
    specification.loader.exec_module(module)
    tests = [test for test in vars(module).values() if hasattr(test, "body")]
    texts = {test.__name__: answers.as_text(answer(test), ROOM) for test in tests}
    assert len(texts) == len(tests), f"two tests of {path} have one name"
    write(path, module, texts)


def answer(test):
    """What PyTorch returns, with the digits that were recorded before where it agrees."""
    try:
        old = test.expected()
    except LookupError:
        old = None
    torch.manual_seed(0)
    torch.set_grad_enabled(True)
    new = as_torch.described(test.body(torch))
    return answers.kept(old, new, test.precision)


def write(path, module, texts):
    """Write the lines of answers into the tests of a file, and those of long ones beside it."""
    source = path.read_text()
    lines, places = source.splitlines(keepends=True), decorators(module, source)
    short = {name for name in places.keys() & texts.keys() if is_short(texts[name])}
    for name in sorted(places, key=lambda name: places[name].lineno, reverse=True):
        place = places[name]
        text = decorator(source, place, texts[name] if name in short else None)
        lines[place.lineno - 1 : place.end_lineno] = [f"{text}\n"]
    path.write_text("".join(lines))
    long = {name: indented(text) for name, text in texts.items() if name not in short}
    answers.save_sections(answers.beside(path, "txt"), long)


def is_short(text):
    fits = len(text) <= MOST_LINES and max(map(len, text)) <= ROOM
    return fits and not any('"""' in line for line in text)


def decorators(module, source):
    """The decorators of tests that can take an answer, by the names of the tests."""
    places = {}
    for function in ast.parse(source).body:
        for node in getattr(function, "decorator_list", ()):
            name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
            value = vars(module).get(name)
            if getattr(value, "func", value) is as_torch.as_torch:
                places[function.name] = node
    return places


def decorator(source, node, text):
    """The lines of a decorator with an answer instead of the one that it has."""
    is_call = isinstance(node, ast.Call)
    name = ast.unparse(node.func if is_call else node)
    options = [ast.get_source_segment(source, k) for k in node.keywords] if is_call else []
    if text is None:
        return f"@{name}({', '.join(options)})" if options else f"@{name}"
    arguments = ", ".join([f'"{text[0]}"', *options])
    line = f"@{name}({arguments})"
    if len(text) == 1 and len(line) <= answers.WIDTH and not set(text[0]) & {'"', "\\"}:
        return line
    quotes = ("r" if any("\\" in line for line in text) else "") + '"""'
    if not options:
        return f'@{name}({quotes}\n{indented(text)}""")'
    return f'@{name}(\n    {quotes}\n{indented(text)}    """,\n    {", ".join(options)},\n)'


def indented(text):
    return "".join(f"    {line}\n" for line in text)


if __name__ == "__main__":
    main()
