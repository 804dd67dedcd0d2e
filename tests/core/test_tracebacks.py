"""Tracebacks of users' mistakes: their lines, in order, and nothing of jaxgrad and JAX."""

import linecache
import os
import re
import subprocess
import sys
import traceback
import warnings

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

# Lines with a number are those that the traceback shows, in this order.
MISTAKES = {
    "shapes": """
        a, b = torch.ones(2, 3), torch.ones(4)
        a + b                                                       # 1
    """,
    "shapes in a function": """
        def layer(x, w):
            return x @ w                                            # 2
        layer(torch.ones(2, 3), torch.ones(2, 3))                   # 1
    """,
    "an operator in place on a leaf": """
        x = torch.ones(3, requires_grad=True)
        x.sub_(0.1 * x)                                             # 1
    """,
    "dtype": """
        torch.ones(3, dtype="float33")                              # 1
    """,
    "ragged data": """
        torch.tensor([[1.0], [1.0, 2.0]])                           # 1
    """,
    "index": """
        torch.ones(3)[1.5]                                          # 1
    """,
    "assignment to an index": """
        torch.ones(3)[:2] = torch.ones(3)                           # 1
    """,
    "item() of several elements": """
        torch.ones(3).item()                                        # 1
    """,
    "backward() of several elements": """
        x = torch.ones(3, requires_grad=True)
        (x * x).backward()                                          # 1
    """,
    "backward() twice": """
        x = torch.ones(3, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        y.backward()                                                # 1
    """,
    "unused input of grad()": """
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        torch.autograd.grad(x.sum(), y)                             # 1
    """,
    "hook": """
        x = torch.ones(3, requires_grad=True)
        y = x * x
        def hook(grad):
            return grad + torch.ones(4)                             # 2
        y.register_hook(hook)
        y.sum().backward()                                          # 1
    """,
    "Function.backward": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * x
            @staticmethod
            def backward(ctx, grad):
                return grad + torch.ones(4)                         # 2
        Square.apply(torch.ones(3, requires_grad=True)).sum().backward()  # 1
    """,
    "Function.forward": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x + torch.ones(4)                            # 2
        Square.apply(torch.ones(3))                                 # 1
    """,
    "jit": """
        @torch.jit
        def step(x):
            return x + torch.ones(4)                                # 2
        step(torch.ones(3))                                         # 1
    """,
    "item() in jit": """
        @torch.jit
        def step(x):
            if x.sum().item() > 0:                                  # 2
                return x
            return -x
        step(torch.ones(3))                                         # 1
    """,
    "module in jit": """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(3, 2)
            def forward(self, x):
                return self.lin(x)                                  # 3
        net = torch.nn.Sequential(Net(), torch.nn.Tanh())
        @torch.jit
        def step(x):
            return net(x).sum()                                     # 2
        step(torch.ones(5, 4))                                      # 1
    """,
    "hook of a module": """
        net = torch.nn.Linear(3, 2)
        def hook(module, args, output):
            return output + torch.ones(3)                           # 2
        net.register_forward_hook(hook)
        net(torch.ones(3))                                          # 1
    """,
    "loss": """
        torch.nn.functional.cross_entropy(torch.ones(3, 4), torch.ones(5).long())  # 1
    """,
    "vmap of grad": """
        def f(x):
            return (x + torch.ones(4)).sum()                        # 2
        torch.func.vmap(torch.func.grad(f))(torch.ones(2, 3))       # 1
    """,
    "scan": """
        def body(carry, x):
            return carry + torch.ones(4), x                         # 2
        torch.scan(body, torch.ones(3), torch.ones(5, 3))           # 1
    """,
    "gradcheck": """
        def f(x):
            return x + torch.ones(4)                                # 2
        torch.autograd.gradcheck(f, torch.ones(3, requires_grad=True).double())  # 1
    """,
    "optimizer": """
        torch.optim.SGD([torch.ones(3), 3], lr=0.1)                 # 1
    """,
    "closure of an optimizer": """
        w = torch.ones(3, requires_grad=True)
        def closure():
            return w + torch.ones(4)                                # 2
        torch.optim.SGD([w], lr=0.1).step(closure)                  # 1
    """,
    "operator on JAX arrays": """
        def f(x):
            return torch.add(x, jax.numpy.ones(4))                  # 2
        jax.jit(f)(jax.numpy.ones(3))                               # 1
    """,
}


def run(source, path):
    """What a script raises."""
    lines = source.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    text = "\n".join(line[indent:] for line in lines)
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    with pytest.raises(Exception) as raised:
        exec(compile(text, path, "exec"), {"__name__": "script", "torch": torch, "jax": jax})
    return raised.value


def shown(error):
    """The lines of the frames of a traceback, without that of `run`."""
    return [frame.line for frame in traceback.extract_tb(error.__traceback__.tb_next)]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_traceback_shows_the_users_lines_in_order(name, tmp_path):
    source = MISTAKES[name]
    numbered = re.findall(r"^ *(.*?# (\d))$", source, re.MULTILINE)
    expected = [line for line, number in sorted(numbered, key=lambda pair: int(pair[1]))]
    assert shown(run(source, str(tmp_path / "script.py"))) == expected


def test_the_lines_of_a_table_stay(tmp_path):
    table = tmp_path / "cube.yaml"
    table.write_text(
        "- name: cube(Tensor self) -> Tensor\n  forward: self * self * self\n  self: fail(grad)\n"
    )

    def fail(grad):
        if grad.shape == (11,):
            raise ValueError("of the rule")
        return grad

    library = torch.ops.load(table, "with_a_mistake", {"fail": fail})
    x = torch.ones(11, requires_grad=True)
    with pytest.raises(ValueError, match="of the rule") as raised:
        library.cube(x).sum().backward()
    frames = [(frame.path.name, frame.lineno + 1) for frame in raised.traceback]
    assert [name for name, _ in frames] == ["test_tracebacks.py", "cube.yaml", "test_tracebacks.py"]
    assert frames[1] == ("cube.yaml", 3)


def test_an_exception_of_the_users_own_passes_unchanged():
    error = KeyError("mine")

    def hook(grad):
        raise error

    x = torch.ones(3, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(KeyError) as raised:
        x.sum().backward()
    assert raised.value is error and [frame.name for frame in raised.traceback][1:] == ["hook"]


def test_the_context_in_which_the_user_made_a_mistake_stays():
    with pytest.raises(RuntimeError) as raised:
        try:
            raise KeyError("first")
        except KeyError:
            torch.ones(2) + torch.ones(3)
    assert isinstance(raised.value.__context__, KeyError)


def test_exceptions_that_jaxgrad_handled_on_the_way_are_no_context():
    with pytest.raises(TypeError) as raised:
        torch.sin(jnp.ones(3), wrong=1)  # jaxgrad tries two ways to bind these arguments
    assert raised.value.__context__ is None


def test_a_cause_stays_without_internal_frames():
    def function(x):
        return x + torch.ones(4)

    try:
        torch.jit(function)(torch.ones(3))
    except RuntimeError as cause:
        with pytest.raises(ValueError) as raised:
            raise ValueError("other") from cause
    frames = traceback.extract_tb(raised.value.__cause__.__traceback__)
    assert [frame.name for frame in frames][1:] == ["function"]


def names_of_modules(error):
    return {
        frame.f_globals["__name__"].partition(".")[0]
        for frame, _ in traceback.walk_tb(error.__traceback__)
    }


def test_filtering_can_be_switched_off_and_on():
    def mistake():
        with pytest.raises(RuntimeError) as raised:
            torch.ones(2) + torch.ones(3)
        return names_of_modules(raised.value)

    assert "jaxgrad" not in mistake()
    with torch.set_traceback_filtering(False):
        assert "jaxgrad" in mistake()
    assert "jaxgrad" not in mistake()
    torch.set_traceback_filtering(False)
    try:
        assert "jaxgrad" in mistake()
    finally:
        torch.set_traceback_filtering(True)
    assert "jaxgrad" not in mistake()


SCRIPT = """
import jaxgrad as torch

@torch.jit
def step(x):
    return x + torch.ones(4)

step(torch.ones(3))
"""


def printed(**environment):
    """What Python prints for the script, less the lines that mark columns."""
    text = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    ).stderr
    return [line for line in text.splitlines() if set(line) - set(" ~^")]


@pytest.mark.slow
def test_what_python_prints():
    *frames, message, note = printed()
    assert frames == [
        "Traceback (most recent call last):",
        '  File "<string>", line 8, in <module>',
        '  File "<string>", line 6, in step',
    ]
    assert message.startswith("RuntimeError: The size of tensor a (3) must match the size")
    assert "JAXGRAD_TRACEBACKS=full" in note


@pytest.mark.slow
def test_an_environment_variable_shows_all_frames():
    text = "\n".join(printed(JAXGRAD_TRACEBACKS="full"))
    assert "dispatch.py" in text and "jax/_src" not in text


@pytest.mark.slow
def test_jax_with_all_frames_shows_those_of_jaxgrad_too():
    text = "\n".join(printed(JAX_TRACEBACK_FILTERING="off"))
    assert "dispatch.py" in text and "jax/_src" in text


@pytest.mark.slow
def test_an_unknown_value_of_the_environment_variable_is_refused():
    *_, message = printed(JAXGRAD_TRACEBACKS="sometimes")
    assert message == (
        "ValueError: JAXGRAD_TRACEBACKS is 'sometimes': set it to 'filtered' or 'full'"
    )


x = torch.ones(3, 3)
WARNINGS = {
    "tensor of a tensor": lambda: torch.tensor(x),
    "implicit dimension": lambda: F.softmax(x),
    "implicit dimension of a module": lambda: nn.Softmax()(x),
    "sizes of a loss": lambda: F.mse_loss(x, torch.ones(3)),
    "backward(create_graph=True)": lambda: torch.autograd.backward(
        torch.ones(1, requires_grad=True).sum(), create_graph=True
    ),
    "scalar that requires grad": lambda: float(torch.ones(1, requires_grad=True)),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_is_of_the_users_line(name):
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        WARNINGS[name]()
    assert [warning.filename for warning in messages] == [__file__]
