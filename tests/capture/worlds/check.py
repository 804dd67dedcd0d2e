"""Compares a random world with its copy in which the function is compiled, line by line."""

import contextlib
import gc
import linecache
import random
import re
import textwrap
import warnings
from collections import Counter

import jaxgrad

from . import prelude
from .observe import Observer, difference, is_large
from .writer import Program, get_settings, put_settings, write

REFUSAL = re.compile(r"jaxgrad\.jit|recorded outside: a pass with create_graph")
PASS = re.compile("backward through the graph a second time")


class Differs(AssertionError):
    """A world and its copy differ. `place`: where, which is the same in a smaller program."""

    def __init__(self, place, text):
        super().__init__(f"{place}: {text}")
        self.place = place


class NoProgram(Exception):
    """The world of a program cannot be made, compiled or not: it reads a name that is not set."""


class World:
    """A world that a program has made. `refused`: what compiled calls were refused for."""

    def __init__(self, program: Program, jit, name):
        self.names, self.name, self.raw, self.step = prelude.namespace("world"), name, None, None
        self.refused = []
        jaxgrad.manual_seed(3)
        random.seed(3)
        for number, text in enumerate(program.setup()):
            try:
                self.run(text, f"setup {number}")
            except (AttributeError, NameError) as error:
                raise NoProgram(text) from error
        self.raw = self.names["step"]
        self.step = self.names["step"] = jit(self.raw)
        observer = Observer()
        observer.world(self.names)
        self.watched = observer.tensors()

    def run(self, text, place):
        name = f"<{self.name} {place}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), self.names)

    def observed(self):
        return Observer(self.watched).world(self.names)

    def statement(self, line, number):
        """Run a line; gives what is observed afterwards and the exception, or None."""
        error = None
        is_call = re.match(r"out\d+ = step", line) and self.step is not self.raw
        if is_call:
            self.look_up(line)
        before = self.observed() if is_call else None
        try:
            self.run(line, number)
        except Exception as raised:
            error = raised
        if is_call and error is not None:
            error = self.again(line, number, before, error)
        return self.observed(), error

    def look_up(self, line):
        """Look up the items among the arguments of a call: a defaultdict adds one that is missing,
        which is no change of the call.
        """
        for item in re.findall(r"\w+(?:\.\w+)*\['\w+'\]", line.partition("step(")[2]):
            with contextlib.suppress(Exception):
                eval(item, self.names)

    def again(self, line, number, before, error):
        """Run a call uncompiled that has raised compiled, and so must have changed nothing."""
        changed = difference(self.observed(), before)
        if changed:
            path, after, then = changed
            raise Differs(
                f"changed by a call that raised, {path}",
                f"{said(after)} for {said(then)} at\n{line}",
            ) from error
        if is_refusal(error):
            self.refused.append(error)
        self.names["step"] = self.raw
        uncompiled = None
        try:
            self.run(line, number)
        except Exception as raised:
            uncompiled = raised
        finally:
            self.names["step"] = self.step
        if not is_refusal(error) and type(uncompiled) is not type(error):
            told = "".join(f"\n{type(e).__name__}: {e}" for e in (error, uncompiled))
            names = type(error).__name__, type(uncompiled).__name__
            what = f"raises {names} {reason(error)}"
            raise Differs(what, f"{told} at\n{line}") from error
        return uncompiled


def is_refusal(error):
    return isinstance(error, RuntimeError) and REFUSAL.search(str(error)) is not None


def reason(error):
    """The words of a message without what differs from program to program."""
    text = REFUSAL.sub("", str(error))
    text = re.sub(r"\S*[\d<>\[\]()'\"/]\S*", "_", text.splitlines()[0] if text else "")
    return text[:110].strip(" ,:")


def said(value):
    """How an observed value is shown; a number of a trace that is left behind by its class."""
    is_known = type(value) in (int, float, bool, str, tuple, type(None))
    return str(value) if is_known else f"a {type(value).__name__}"


def plain(function):
    return function


def check(program: Program, jit=None):
    """Raises Differs where the compiled function does something else. Gives the refusals."""
    settings = get_settings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            uncompiled = run(program, plain, "uncompiled", settings)
            return compare(program, uncompiled, jit or jaxgrad.jit, settings)
        finally:
            put_settings(settings)


def run(program, jit, name, settings):
    """What is observed before the first line of the script and after each, with its exception."""
    put_settings(settings)
    world = World(program, jit, name)
    states = [(world.observed(), None)]
    for number, line in enumerate(program.script):
        states.append(world.statement(line, number))
    return states


def compare(program, uncompiled, jit, settings):
    put_settings(settings)
    world = World(program, jit, "compiled")
    states = [(world.observed(), None)]
    lines = ["the beginning", *program.script]
    for number, (line, (wanted, error)) in enumerate(zip(lines, uncompiled, strict=True)):
        if number:
            states.append(world.statement(line, number - 1))
        observed, raised = states[-1]
        is_pass = "backward()" in line or "slope(" in line
        if error is None and is_pass and PASS.search(str(raised)):
            break  # a number that varies is saved by the graph, which a pass uses up
        if error is None and is_refusal(raised):
            world.refused.append(raised)  # the gradient of a result
            break
        if error is not None and is_pass and PASS.search(str(raised)):
            break  # a hook has raised before the pass came to what is used up
        if type(raised) is not type(error):
            told = "".join(f"\n{type(e).__name__}: {e}" for e in (raised, error))
            names = type(raised).__name__, type(error).__name__
            raise Differs(f"raises {names}", f"{told} at\n{line}") from (raised or error)
        if error is not None and (PASS.search(str(error)) or "backward()" in line):
            break  # which gradients a pass has filled before it fails is not defined
        differing = difference(observed, wanted)
        if differing:
            path, one, other = differing
            what = re.sub(r"\d+", "", path)
            told = f"{path} is {said(one)}, uncompiled {said(other)}, after\n{line}"
            raise Differs(what, told)
        if is_large(wanted):
            break
    return world.refused


# ---- seeds


def seed_result(seed, is_made_small=True):
    """The refusals of the program of a seed; raises AssertionError with a small program where the
    compiled function does something else.
    """
    program = write(seed)
    try:
        return check(program)
    except NoProgram:
        return []  # one of ten thousand
    except Differs as differs:
        what, text = differs.place, str(differs)
        cause = differs.__cause__
    if not is_made_small:
        raise AssertionError(f"seed {seed}: {text}") from cause
    small = smaller(program, lambda part: fails(part, what))
    differs = fails(small, what)
    if differs is not None:
        text, cause = differs, differs.__cause__
    raise AssertionError(f"seed {seed}: {text}\n\n{small}") from cause


def fails(program, what):
    try:
        check(program)
    except Differs as differs:
        return differs if kind(differs.place) == kind(what) else None
    except Exception:
        return None  # what is left is no program
    return None


def kind(what):
    """Whether it raises, or which part of a tensor or holder differs."""
    return what if what.startswith(("raises", "changed")) else "state"


def smaller(program, fails):
    """A program without anything that it fails without."""
    for part in ("script", "body", "state") * 2:
        number = 0
        while number < len(getattr(program, part)):
            shorter = next(filter(fails, reductions(program, part, number)), None)
            program, number = shorter or program, number + (shorter is None)
    return program


def reductions(program, part, number):
    """Programs without a statement, or without a line of it."""
    statements = getattr(program, part)
    replaced = statements[number]
    rest = [[]]
    if replaced.startswith("return") and replaced != "return None":
        rest = [["return None"]]
    yield from (
        program._replace(**{part: (*statements[:number], *r, *statements[number + 1 :])})
        for r in rest
    )
    lines = replaced.split("\n")
    for place in range(len(lines) if len(lines) > 1 else 0):
        less = textwrap.dedent("\n".join(lines[:place] + lines[place + 1 :]))
        yield program._replace(**{part: (*statements[:number], less, *statements[number + 1 :])})


class Tally:
    """What was seen of many seeds: how many calls, the refusals by reason, the disagreements."""

    def __init__(self):
        self.seeds, self.refusals, self.disagreements = 0, Counter(), {}

    def add(self, seed, is_made_small=True):
        self.seeds += 1
        try:
            refused = seed_result(seed, is_made_small)
        except AssertionError as error:
            self.disagreements[seed] = error
        else:
            for why in {reason(error) for error in refused}:
                self.refusals[why] += 1
            self.refusals["any"] += bool(refused)
        if self.seeds % 200 == 0:
            with contextlib.suppress(AttributeError):
                jaxgrad.compiler.reset()
            gc.collect()
