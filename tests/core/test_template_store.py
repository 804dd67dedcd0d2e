"""Templates that are kept in files (core/templates.py, core/template_store.py)."""

import json
import operator
import subprocess
import sys
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.core import bounded_cache, jax_internals, template_store, templates
from jaxgrad.core.host import template


class Directory(dict):
    """Stands for the cache in the user's directory."""

    def put(self, key, value):
        self[key] = value

    names = dict.keys


@pytest.fixture
def user_directory(monkeypatch):
    """The user's directory, which is empty, with templates from the first call of a pattern on."""
    directory = Directory()
    monkeypatch.setattr(template_store, "user_cache", lambda: directory)
    monkeypatch.setattr(template_store, "shipped", lambda: template_store.File(Path("/missing")))
    forget()
    yield directory
    template_store._noted.clear()
    forget()


def forget():
    """Forget all programs, as a new process has none."""
    bounded_cache.forget_all()
    for name in torch.ops.library.names:
        for primitive in vars(torch.ops.library.find(name)).get("primitives", ()):
            primitive.alive.clear()


@pytest.fixture
def traces():
    """How many functions JAX traces."""
    events = []

    def note(event, _seconds, **_):
        if event == jax_internals.TRACE_EVENT:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield events
    jax.monitoring.unregister_event_duration_listener(note)


def trained(rows, columns):
    """A loss, gradients of two orders, and a step of an optimizer."""
    random = np.random.default_rng(0)
    x = torch.tensor(random.standard_normal((rows, columns)).astype(np.float32))
    w = torch.tensor(random.standard_normal((columns, 3)).astype(np.float32), requires_grad=True)
    loss = torch.softmax(torch.relu(x @ w) * 0.3 + 1, -1).square().sum()
    (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
    gradient.square().sum().backward()
    tensors = [loss.detach(), gradient.detach(), w.grad.clone()]
    torch.optim.AdamW([w], lr=0.1).step()
    return [tensor.tolist() for tensor in (*tensors, w.detach())]


def by_kernels(function, *arguments):
    """What the function gives where XLA computes everything, and nothing is looked up."""
    is_on, template_store.is_on = template_store.is_on, False
    forget()
    try:
        with eager("deferred,compiled"):
            return function(*arguments)
    finally:
        template_store.is_on = is_on
        forget()


def assert_close(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=1e-6)
        checks.count("templates of files")


@pytest.mark.slow
def test_what_a_process_has_traced_is_not_traced_again(user_directory, traces, monkeypatch):
    expected = trained(4, 5)
    assert traces
    template_store.write_noted()
    forget()
    traces.clear()
    assert_close(trained(4, 5), expected)
    assert traces == []


@pytest.mark.slow
def test_a_template_serves_other_extents_without_a_trace(user_directory, traces, monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 0)
    trained(4, 5)
    expected = by_kernels(trained, 6, 7)
    traces.clear()
    assert_close(trained(6, 7), expected)
    assert traces == []


def reordered(rows, columns):
    """What operators give that take extents and places besides tensors."""
    numbers = np.random.default_rng(0).standard_normal((rows, 2 * columns)).astype(np.float32)
    x = torch.tensor(numbers, requires_grad=True)
    parts = x.view(rows, 2, columns), x.reshape(2 * rows, columns), x[2:, :columns]
    lengths, rest = torch.arange(rows + 1, 1, -1), {"batch_first": True}
    packed = torch.nn.utils.rnn.pack_padded_sequence(x.view(rows, columns, 2), lengths, **rest)
    results = *parts, *x.split([columns - 1, columns + 1], 1), x.chunk(2, 1)[1], packed.data
    sum([(result * result).sum() for result in results]).backward()
    return [tensor.tolist() for tensor in (*[result.detach() for result in results], x.grad)]


@pytest.mark.slow
def test_a_template_serves_other_extents_among_the_arguments_without_a_trace(
    user_directory, traces, monkeypatch
):
    monkeypatch.setattr(templates, "CALLS", 0)
    reordered(5, 7)
    expected = by_kernels(reordered, 8, 11)
    traces.clear()
    assert_close(reordered(8, 11), expected)
    assert traces == []


def written(rows):
    """What writes through views and through views of these give, with the gradients."""
    numbers = np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32)
    x = torch.tensor(numbers, requires_grad=True)
    whole = x * 2
    whole[1] = x[0] * 3
    whole[:, 2].mul_(x[:, 1])
    whole[1:][0, 1:3] = 5.0
    whole.square().sum().backward()
    return [whole.detach().tolist(), x.grad.tolist()]


@pytest.mark.slow
def test_a_write_through_a_view_is_not_traced_again(user_directory, traces):
    expected = by_kernels(written, 3)
    assert_close(written(3), expected)
    template_store.write_noted()
    assert traces
    forget()
    traces.clear()
    assert_close(written(3), expected)
    assert traces == []
    assert_close(written(5), by_kernels(written, 5))


def test_a_refused_trace_keeps_nothing_of_its_caller(user_directory, monkeypatch):
    """JAX's error is in a cycle, and no search for garbage comes while the tests run."""
    monkeypatch.setattr(templates, "CALLS", 0)
    monkeypatch.setattr(templates, "TRACES", 1)
    kept = []
    monkeypatch.setattr(template_store, "keep", lambda key, _: kept.append(key.split("(")[0]))

    def call():
        signal, kernel = torch.ones(2, 3, 11), torch.ones(4, 3, 5)
        assert torch.conv1d(signal, kernel, stride=2).sum().item() == 2 * 4 * 4 * 15
        return weakref.ref(signal)

    assert call()() is None
    assert not any("conv" in name for name in kept)
    checks.count("templates of files")


@pytest.mark.slow
def test_wrong_arguments_raise_as_without_templates(user_directory, monkeypatch):
    def messages():
        texts = []
        for call in (
            lambda: torch.ones(2, 3) @ torch.ones(4, 5),
            lambda: torch.ones(2, 3) + torch.ones(4),
            lambda: torch.ones(4, 3).reshape(5, 2),
            lambda: torch.cat([torch.ones(2, 3), torch.ones(2, 4)]),
            lambda: torch.nn.functional.glu(torch.ones(2, 5)),
            lambda: torch.ones(4, 6).view(3, 7),
            lambda: torch.ones(4, 6).expand(4, 5),
            lambda: torch.ones(4, 6).split([4, 5], 1),
            lambda: torch.ones(4, 6)[5],
        ):
            with pytest.raises((IndexError, RuntimeError, TypeError, ValueError)) as caught:
                call().tolist()
            texts.append(str(caught.value))
        return texts

    expected = by_kernels(messages)
    monkeypatch.setattr(templates, "CALLS", 0)
    torch.ones(2, 3) @ torch.ones(3, 5) + torch.ones(5)
    torch.cat([torch.ones(2, 3), torch.ones(4, 3)]).reshape(3, 6)
    torch.nn.functional.glu(torch.ones(2, 6))
    torch.ones(4, 6).view(3, 8)
    torch.ones(4, 1).expand(4, 5)
    torch.ones(4, 6).split([4, 2], 1)
    torch.ones(4, 6)[3]
    assert messages() == expected and len(set(expected)) == 9


TESTS = {
    "equality": lambda n: n % 7 == 5,
    "inequality": lambda n: not operator.ne(n, 5),
    "membership": lambda n: n in (5, 6),
    "truth": lambda n: not n % 2,
    "size": lambda n: n > 7,
}


@pytest.mark.parametrize("name", TESTS)
def test_what_is_computed_may_depend_on_extents(user_directory, monkeypatch, tmp_path, name):
    monkeypatch.setattr(templates, "CALLS", 0)
    is_special, table = TESTS[name], tmp_path / "special.yaml"
    table.write_text("- name: by_extent(Tensor self) -> Tensor\n  self: auto\n")

    def by_extent(self):
        return self * 2 if is_special(self.shape[0]) else self * 3

    mine = torch.ops.load(table, f"extents_{name}", {"by_extent": by_extent})
    for extent in (9, 8, 7, 6, 5, 10):
        (number,) = set(mine.by_extent(torch.tensor([1.0] * extent)).tolist())
        assert number == (2.0 if is_special(extent) else 3.0)
        checks.count("templates of files")


def test_a_users_operator_is_not_kept(user_directory, monkeypatch, tmp_path):
    monkeypatch.setattr(templates, "CALLS", 0)
    table = tmp_path / "doubled.yaml"
    table.write_text(
        "- name: kept_double(Tensor self) -> Tensor\n  forward: self * 2\n  self: grad * 2\n"
    )
    mine = torch.ops.load(table, "kept_here")
    assert mine.kept_double(torch.tensor([1.0] * 3)).tolist() == [2.0] * 3
    template_store.write_noted()
    records = b"".join(user_directory.values())
    assert b'"mul"' not in records


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[1, 2, 3]",
        b"\xff\xfe",
        b"[[[[[[",
        b'[{"equations": "x"}, [], []]',
        b"[" * 10**5,
    ],
)
def test_what_is_no_record_is_ignored(user_directory, value):
    x = torch.tensor([0.5, 1.0])
    x.sin().tolist()
    template_store.write_noted()
    assert user_directory
    for key in user_directory:
        user_directory[key] = value
    forget()
    assert_close([x.sin().tolist()], [np.sin([0.5, 1.0])])


def test_a_record_of_another_program_is_ignored(user_directory):
    """Its inputs have other dtypes or another number."""
    torch.ones(3, dtype=torch.float64).sin().tolist()
    template_store.write_noted()
    value = next(value for value in user_directory.values() if b'"sin"' in value)
    forget()
    x = torch.tensor([0.5, 1.0, 2.0])
    (x + x).sin().tolist()
    template_store.write_noted()
    for key in user_directory:
        user_directory[key] = value
    forget()
    np.testing.assert_allclose((x + x).sin().tolist(), np.sin([1.0, 2, 4]), rtol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: jax.config.update("jax_threefry_partitionable", False),
    ],
)
def test_under_other_settings_nothing_is_looked_up(user_directory, change):
    before = jax.config.jax_threefry_partitionable
    try:
        change()
        assert not template_store.is_usual()
    finally:
        torch.set_default_dtype(torch.float32)
        jax.config.update("jax_threefry_partitionable", before)
    assert template_store.is_usual()


# ---- the file that is shipped


def test_a_file_has_each_of_its_records(tmp_path):
    path, records = tmp_path / "templates.tsv", {f"key {i} é": [i, "x" * i] for i in range(100)}
    template_store.write(path, records)
    file = template_store.File(path)
    for key, record in records.items():
        assert json.loads(file.find(key)) == record
    for key in ("", "key", "key 1", "key 99 é ", "zzz", "!", "! sources"):
        assert file.find(key) is None
    lines = path.read_bytes().splitlines()
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "content", [b"", b"! sources 0000\t\n", b"\n\n\n", b"no file of templates"]
)
def test_a_file_of_other_sources_has_nothing(tmp_path, content):
    path = tmp_path / "templates.tsv"
    path.write_bytes(content)
    assert template_store.File(path).find("abs(@) float32[d0]") is None


@pytest.mark.checkout
def test_the_shipped_file_is_of_these_sources():
    first = template_store.FILE.read_bytes().partition(b"\t")[0].decode()
    assert first == template_store.FIRST + template_store.digest(), "run `make templates`"


def test_every_shipped_template_can_be_read():
    lines = template_store.FILE.read_bytes().splitlines()[1:]
    keys = [line.partition(b"\t")[0] for line in lines]
    assert len(set(keys)) == len(keys) > 1000
    lines = [line for line in lines if not line.startswith(b"= ")]  # what is kept of operators
    for line in lines[:: len(lines) // 200]:
        for record in json.loads(line.partition(b"\t")[2]):
            assert template.Template(record).reader().results


PROGRAM = """
import sys, jax
events = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: events.append(event))
sys.path.insert(0, {tests!r})
import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.core import template_store
template_store.is_on = {is_on}
x = torch.tensor([[0.1 * i - 0.3 * j for i in range(6)] for j in range(9)])
y = torch.tensor([i % 4 for i in range(9)])
model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
for i, parameter in enumerate(model.parameters()):
    numbers = torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape)
    parameter.data.copy_(numbers * (i + 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
events.clear()
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
print([loss.tolist(), *[p.tolist() for p in model.parameters()]])
print(sum("jaxpr_trace" in event for event in events))
print("yaml" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.checkout
def test_a_process_with_the_shipped_file_does_not_trace_and_has_the_numbers_of_one_that_does():
    runs = []
    for is_on in (True, False):
        program = PROGRAM.format(is_on=is_on, tests=str(Path(__file__).parents[1]))
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        numbers, count, has_read_entries = run.stdout.splitlines()
        assert has_read_entries == "False"
        runs.append((json.loads(numbers), int(count)))
    (numbers, traced), (expected, all_traced) = runs
    assert traced == 0 and all_traced > 10
    assert_close(
        [np.concatenate([np.ravel(n) for n in numbers])],
        [np.concatenate([np.ravel(n) for n in expected])],
    )
