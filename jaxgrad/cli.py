"""The command `jaxgrad`: `run` runs a program that imports torch, `launch` runs one in several
processes, `compare` runs one under PyTorch too and shows where the runs differ, `scan` lists the
names that programs use and jaxgrad lacks, `check` finds mistakes in tables of derivatives, `ops`
tells about the operators, `platforms` what they are on GPUs and TPUs, `cache` about the executables
on disk, `doctor` whether jaxgrad can work here, `stubs` writes the type stubs.
"""

import argparse
import ast
import difflib
import json
import os
import sys
from pathlib import Path

from . import coverage, ops
from .compare.options import add_options as add_compare_options
from .compat import scan
from .compat.run import run
from .core import file_cache, shape_check
from .core.host import equation
from .distributed.run import add_options as add_launch_options
from .distributed.run import run as run_launch
from .late import LateModule
from .ops import cards
from .table import TableError, help_file, load
from .table.mistakes import printable

# for commands that few call
comparing = LateModule("jaxgrad.compare.command")
doctor = LateModule("jaxgrad.doctor")
platforms = LateModule("jaxgrad.platforms")
stubs = LateModule("jaxgrad.stubs")

FINE, MISTAKES, UNREADABLE = 0, 1, 2


def main(arguments=None):
    """Run the command `jaxgrad`, and return its exit status.

    run: that of the program. launch: that of the worker that failed first. compare: 0 for equal
    runs, 1 for a difference, 2 for misuse. scan, check: 0 for nothing found, 1 for something, 2 for
    no file. ops: 0, 1 for an unknown operator. doctor: 0, 1 if something is wrong. cache, stubs: 0.
    """
    options = command_line().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if options.run is run_program:  # an error of the program, as under Python
            raise
        # the reader, such as `head`, has what it wanted; Python's end flushes once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    return status


def run_check(options):
    try:
        functions, operators = known_names(options.functions)
    except (OSError, SyntaxError, ValueError) as error:
        return complain(error)
    results = [check_file(path, functions, operators) for path in options.files]
    all_mistakes = [mistake for _, mistakes in results for mistake in mistakes]
    if options.json:
        print(json.dumps([mistake._asdict() for mistake in all_mistakes], indent=1))
    for mistake in () if options.json else all_mistakes:
        print(mistake)
    return max(status for status, _ in results)


def command_line():
    parser = argparse.ArgumentParser(prog="jaxgrad", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_programs(commands)
    check = commands.add_parser("check", help="find the mistakes of tables of derivatives")
    check.add_argument("files", nargs="+", metavar="FILE", help="a table, such as derivatives.yaml")
    check.add_argument("--json", action="store_true", help="print the mistakes as a JSON list")
    check.add_argument(
        "--functions",
        action="append",
        default=[],
        metavar="FILE.py",
        help="a module whose functions the formulas may call; it is read, not run",
    )
    check.set_defaults(run=run_check)
    operators = commands.add_parser("ops", help="tell about the operators")
    operators.add_argument("names", nargs="*", metavar="NAME", help="print the operator's card")
    operators.add_argument(
        "--missing", action="store_true", help="list PyTorch's names that jaxgrad does not have"
    )
    operators.add_argument(
        "--compiled",
        action="store_true",
        help="list the primitives of JAX that have no rule for NumPy, so that operators with them "
        "are compiled at their first call",
    )
    operators.set_defaults(run=run_ops)
    add_platforms(commands)
    cache = commands.add_parser("cache", help="tell about the executables on disk")
    cache.add_argument("--clear", action="store_true", help="remove them")
    cache.set_defaults(run=run_cache)
    health = commands.add_parser(
        "doctor", help="tell versions, devices and the cache, and the first thing that is wrong"
    )
    health.set_defaults(run=run_doctor)
    types = commands.add_parser("stubs", help="write the type stubs, which wheels have")
    types.set_defaults(run=run_stubs)
    return parser


def add_platforms(commands):
    by_platform = commands.add_parser(
        "platforms", help="tell what operators are on CPUs, GPUs and TPUs; no device is needed"
    )
    by_platform.add_argument("names", nargs="*", metavar="NAME", help="by default, all operators")
    by_platform.set_defaults(run=run_platforms)


def add_programs(commands):
    program = commands.add_parser("run", help="run a program with jaxgrad as its torch")
    program.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module")
    program.add_argument("program", metavar="PROGRAM", help="a Python file")
    rest = program.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    rest.required = False  # or an error says that it is missing along with PROGRAM
    program.set_defaults(run=run_program)
    launch = commands.add_parser(
        "launch", help="run a program in several processes that train together", allow_abbrev=False
    )
    add_launch_options(launch)
    launch.set_defaults(run=run_launch)
    comparison = commands.add_parser(
        "compare", help="run a program under PyTorch too, and show where the runs first differ"
    )
    add_compare_options(comparison)
    comparison.set_defaults(run=run_compare)
    uses = commands.add_parser(
        "scan", help="list the names of torch in programs that are missing, or differ"
    )
    uses.add_argument(
        "paths", nargs="+", metavar="PATH", help="a Python file or notebook, or a folder of them"
    )
    uses.add_argument("--json", action="store_true", help="print them as a JSON list")
    uses.set_defaults(run=run_scan)


def run_program(options):
    if not options.is_module and not Path(options.program).exists():
        return complain(FileNotFoundError(2, "no such file", options.program), "run")
    run(options.program, options.arguments, options.is_module)
    return FINE


def run_compare(options):
    return comparing.run_compare(options)


def run_scan(options):
    findings, status = [], FINE
    for file in scan.files_in(options.paths):
        try:
            findings += scan.scan(file)
        except (OSError, SyntaxError, ValueError) as error:
            error.filename = str(file)
            status = complain(error, "scan")
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=1))
    for finding in () if options.json else findings:
        print(finding)
    return status or (MISTAKES if findings else FINE)


def run_ops(options):
    if options.missing:
        print(coverage.report())
        return FINE
    if options.compiled:
        print("\n".join(equation.without_rules()))
        return FINE
    if not options.names:
        for name in cards.names():
            print(f"{cards.public_path(name):32} {ops.library.table.doc(name) or ''}")
        return FINE
    return max(map(print_card, options.names))


def run_platforms(options):
    entries = list(map(entry_of, options.names))
    unknown = [entry for entry in entries if entry not in ops.library.table.entries]
    for entry in unknown:
        print(f"jaxgrad platforms: no operator {printable(entry)}", file=sys.stderr)
    if unknown:
        return MISTAKES
    print(platforms.table(entries), end="")
    return FINE


def run_cache(options):
    directory = file_cache.wanted_directory()
    if directory is None:
        print(f"off: the environment variable {file_cache.VARIABLE} says so")
        return FINE
    cache = file_cache.FileCache(directory)
    files = cache.files()
    size = f"{len(files)} files of {sum(size for _, size, _ in files) / 1e6:.1f} MB"
    if options.clear:
        cache.shrink(0)
        print(f"{directory}: removed {size}")
    else:
        print(f"{directory}: {size}, at most {cache.limit / 1e6:.0f} MB")
    return FINE


def run_doctor(_):
    text, is_well = doctor.report()
    print(text)
    return FINE if is_well else MISTAKES


def run_stubs(_):
    print(f"{stubs.PACKAGE}: {stubs.write(stubs.PACKAGE)} stubs")
    return FINE


def entry_of(name):
    """The entry that a name of an operator, such as `torch.linalg.svd`, stands for."""
    entry = name.removeprefix("torch.").removeprefix("ops.").removeprefix("Tensor.")
    return entry.replace(".", "_")


def print_card(name):
    """Print the card of an operator by any of its names, `torch.linalg.svd` or `linalg_svd`."""
    entry = entry_of(name)
    try:
        card = cards.card(entry)
    except AttributeError:
        near = difflib.get_close_matches(entry, ops.library.table.operators, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"jaxgrad ops: no operator {printable(name)}{hint}", file=sys.stderr)
        return MISTAKES
    width = max(len(title) for title, _ in card.rows)
    print(f"{card.name}: {card.sentence}")
    for title, text in card.rows:
        print(f"  {title:{width}}  {text.replace('`', '')}")
    return FINE


def check_file(path, functions, operators):
    """The exit status for one file, and its mistakes: in the language, else in the shapes."""
    try:
        table = load(path, functions, operators, help_path=help_file.beside(path))
        table.check()
    except TableError as error:
        return MISTAKES, error.mistakes
    except OSError as error:
        return complain(error), ()
    mistakes = shape_check.mistakes_of(ops.Library(table, {}, ops.library))
    return (MISTAKES if mistakes else FINE), mistakes


def complain(error, command="check"):
    name = getattr(error, "filename", None)
    why = getattr(error, "strerror", None) or error
    place = f"{printable(str(name))}: " if name else ""
    print(f"jaxgrad {command}: {place}{printable(str(why))}", file=sys.stderr)
    return UNREADABLE


def known_names(paths):
    """The functions that formulas may call, those of jaxgrad and of `paths`, and the operators."""
    known = ops.library
    functions = {name for path in paths for name in names_in(Path(path))}
    return frozenset(functions | known.functions.keys()), known.names


def names_in(path):
    """The public names of functions that a module defines at its top level, or imports from outside
    of the standard library.
    """
    tree = ast.parse(path.read_bytes(), str(path))
    names = {name for statement in tree.body for name in bound_by(statement)}
    return {name for name in names if not name.startswith("_")}


def bound_by(statement):
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom):
        if (statement.module or "").partition(".")[0] in sys.stdlib_module_names:
            return []
        return [alias.asname or alias.name for alias in statement.names]
    targets = getattr(statement, "targets", [])
    return [
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    ]


if __name__ == "__main__":
    sys.exit(main())
