"""Worker processes of a DataLoader. What they do is PyTorch's; the numbers are closed forms."""

import gc
import multiprocessing
import os
import random
import signal
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers import hangs, loaded

import jaxgrad as torch
from jaxgrad.utils.data import DataLoader, TensorDataset, get_worker_info
from jaxgrad.utils.data._utils import messages

WORKERS = {"num_workers": 2}


def processes():
    return [process for process in multiprocessing.active_children() if process.is_alive()]


@pytest.mark.slow
def test_two_workers_load_what_one_process_does():
    loader = DataLoader(loaded.Rows(), batch_size=3, **WORKERS)
    batches = list(loader)
    rows = [batch["place"][0].tolist() for batch in batches]
    assert rows == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert [batch["place"][1].tolist()[0] for batch in batches] == [0, 1, 0, 1]
    assert batches[0]["place"][2].tolist() == [2, 2, 2]
    assert batches[1]["array"].tolist() == [[3, 3], [4, 4], [5, 5]]
    assert batches[1]["tensor"].tolist() == [9, 16, 25]
    # each worker draws from NumPy and jaxgrad with a seed of its own
    for kind in (0, 1):
        draws = [number for batch in batches for number in batch["draws"][kind].flatten().tolist()]
        assert len(set(draws)) == 10
    assert processes() == []


def test_a_seed_decides_order_and_draws():
    def load(workers):
        generator = torch.Generator().manual_seed(5)
        options = {"shuffle": True, "generator": generator, "num_workers": workers}
        return list(DataLoader(loaded.Rows(), batch_size=5, **options))

    first, again, other = load(2), load(2), load(1)
    orders = [[b["place"][0].tolist() for b in batches] for batches in (first, again, other)]
    assert orders[0] == orders[1] == orders[2] != [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    for one, two in zip(first, again, strict=True):
        assert one["draws"][0].tolist() == two["draws"][0].tolist()
        assert one["draws"][1].tolist() == two["draws"][1].tolist()


def test_iterable_datasets():
    def load(**options):
        return [batch.tolist() for batch in DataLoader(batch_size=2, **options, **WORKERS)]

    whole = [[0, 1], [0, 1], [2, 3], [2, 3], [4], [4]]
    assert load(dataset=loaded.Count()) == whole
    assert load(dataset=loaded.Count(is_split=True)) == [[0, 2], [1, 3], [4]]
    assert load(dataset=loaded.Count(), drop_last=True) == whole[:4]
    with pytest.warns(UserWarning, match="get_worker_info"):
        loader = DataLoader(loaded.Count(), batch_size=5, **WORKERS)
        assert len(loader) == 1 and len(list(loader)) == 2


@pytest.mark.parametrize("ahead", [1, 2, 4])
@pytest.mark.parametrize(
    "sizes, batches",
    [
        ((1, 3, 5), [[0], [10, 11], [20, 21], [12], [22, 23], [24]]),
        ((5, 1, 3), [[0, 1], [10], [20, 21], [2, 3], [22], [4]]),
        ((0, 2, 0), [[10, 11]]),
    ],
)
def test_order_of_workers_that_have_more_and_less(sizes, batches, ahead):
    """What PyTorch 2.13 gives."""
    options = {"batch_size": 2, "num_workers": 3, "prefetch_factor": ahead}
    with pytest.warns(UserWarning, match="will create 3 worker processes"):
        loader = DataLoader(loaded.Uneven(*sizes), **options)
    assert [batch.tolist() for batch in loader] == batches


def test_workers_that_persist_serve_again():
    loader = DataLoader(loaded.Rows(), batch_size=5, persistent_workers=True, **WORKERS)
    first = iter(loader)
    next(first)
    known = {process.pid for process in processes()}
    for _ in range(2):
        assert [b["place"][0].tolist()[0] for b in loader] == [0, 5]
    assert {process.pid for process in processes()} == known and len(known) == 2
    assert {worker.pid for worker in loader._iterator._workers if worker.is_alive()} == known
    with pytest.raises(RuntimeError, match="another iteration of this DataLoader has begun"):
        next(first)
    del first, loader
    assert processes() == []


def test_errors_of_workers():
    loader = DataLoader(
        loaded.Faulty(), sampler=[1, 3, 2, 4, 0], persistent_workers=True, **WORKERS
    )
    iterator = iter(loader)
    assert next(iterator).tolist() == [1]
    with pytest.raises(KeyError) as caught:
        next(iterator)
    text = str(caught.value)
    assert text.startswith("Caught KeyError in DataLoader worker process 1.\n")
    assert 'raise KeyError("three is missing")' in text and "loaded.py" in text
    # the others still come
    assert next(iterator).tolist() == [2]
    with pytest.raises(Exception, match="in DataLoader worker process 1"):
        next(iterator)
    assert next(iterator).tolist() == [0]
    with pytest.raises(StopIteration):
        next(iterator)
    refusing = DataLoader(loaded.Faulty(), worker_init_fn=loaded.refuse, num_workers=1)
    with pytest.raises(ValueError, match="worker 0 may not begin"):
        next(iter(refusing))
    del loader, iterator
    assert processes() == []  # although the error is still there


def test_a_worker_that_is_killed():
    loader = DataLoader(loaded.Faulty(), sampler=[0, 5, 1, 2], **WORKERS)
    iterator = iter(loader)
    match = (
        r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly.*"
        r"DataLoader worker \(pid \d+\) is killed by signal: Killed"
    )
    with pytest.raises(RuntimeError, match=match):
        list(iterator)
    assert processes() == [] and list(iterator) == []
    assert [worker.exitcode for worker in iterator._workers].count(-signal.SIGKILL) == 1


def test_a_worker_that_takes_too_long():
    loader = DataLoader(loaded.Faulty(), sampler=[0, 6], timeout=1, num_workers=1)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        list(loader)
    assert processes() == []


def test_leaving_a_loop_early_ends_the_workers():
    for batch in DataLoader(loaded.Rows(), **WORKERS):
        assert batch["place"][0].tolist() == [0]
        assert len(processes()) == 2
        break
    assert processes() == []
    with pytest.raises(ZeroDivisionError) as caught:
        for _ in DataLoader(loaded.Rows(), **WORKERS):
            1 / 0  # noqa: B018
    assert processes() == [] and caught.tb is not None


def test_samples_without_batches():
    samples = list(DataLoader([np.ones(2), 3, "text"], batch_size=None, num_workers=1))
    assert isinstance(samples[0], torch.Tensor) and samples[0].tolist() == [1, 1]
    assert samples[1:] == [3, "text"]


def test_gradients_do_not_cross_processes():
    """A leaf that requires grad is sent; the history of another tensor would be lost."""
    loader = DataLoader(loaded.Weighted(), num_workers=1, collate_fn=loaded.first)
    iterator = iter(loader)
    assert next(iterator).requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iterator)


def test_as_they_are_ready(tmp_path):
    batches = DataLoader(loaded.Rows(), batch_size=2, in_order=False, **WORKERS)
    assert sorted(b["place"][0].tolist()[0] for b in batches) == [0, 2, 4, 6, 8]
    # the other worker goes on, and the slow one is asked for no more than it may load ahead
    path = tmp_path / "goes on"
    batches = iter(DataLoader(loaded.Slow(path), in_order=False, **WORKERS))
    assert [next(batches).item() for _ in range(10)] == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    path.touch()
    assert [b.item() for b in batches] == [0, 2]


def test_a_dataset_that_stops_ends_the_loop():
    """As in PyTorch, with and without workers."""
    for workers in (0, 1, 2):
        loader = DataLoader(loaded.Faulty(), sampler=[0, 1, 7, 2], num_workers=workers)
        assert [b.item() for b in loader] == [0, 1]


def test_batches_arrive_ahead_of_the_step():
    """The next batch is a tensor of this process before the loop asks for it."""
    iterator = iter(DataLoader(TensorDataset(torch.arange(4.0)), num_workers=1, prefetch_factor=3))
    next(iterator)
    for expected in (1, 2, 3):
        _, number, (batch,) = iterator._crew.arrived.get(timeout=hangs.LIMIT)
        assert number == expected
        assert isinstance(batch, torch.Tensor) and batch.tolist() == [expected]


def test_a_worker_that_ends_before_the_file_of_its_arrays_is_gone():
    receiver, sender = multiprocessing.Pipe()
    sender.send_bytes(struct.pack("<3q", 0, 1, 8))  # a message with one array of 8 bytes
    sender.close()
    with receiver, pytest.raises(EOFError, match="before it sent the file"):
        messages.receive(receiver)


def test_large_arrays_are_mapped():
    """Neither a worker nor the parent sees what another one writes to its copy."""
    data = loaded.Memory()
    batches = list(DataLoader(data, batch_size=2, collate_fn=loaded.as_arrays, **WORKERS))
    for number, (rows, tensors, arrays) in enumerate(batches):
        first = np.arange(20_000.0) + 40_000 * number
        assert (rows[0] == first).all() and (rows[1] == -1).all()
        assert (tensors == data.tensor[2 * number : 2 * number + 2].numpy()).all()
        assert (arrays == -1).all()
        arrays += 1  # it is the batch's own memory
    assert (data.array == np.arange(80_000.0).reshape(4, 20_000)).all()
    (batch, _, _), *_ = DataLoader(loaded.Memory(), batch_size=1, **WORKERS)
    assert isinstance(batch, torch.Tensor) and (batch.add_(1)[0, -1] == 20_000).item()


def test_what_is_defined_in_functions_is_sent():
    """Such workers compute, and see the values of variables."""
    scale = 3

    class Mine(Exception):
        pass

    class Sample:
        def __init__(self, value):
            self.value = value

    class Local(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 3:
                raise Mine("three")
            return torch.tensor(float(index)).square() * scale

    sampler, collate = [1, 2, 3], lambda samples: Sample(samples[0])
    iterator = iter(DataLoader(Local(), sampler=sampler, collate_fn=collate, num_workers=1))
    batches = next(iterator), next(iterator)
    assert all(type(batch) is Sample for batch in batches)
    assert [batch.value.item() for batch in batches] == [3, 12]
    with pytest.raises(Mine, match=r"(?s)DataLoader worker process 0\..*test_workers\.py"):
        next(iterator)


class Locked(torch.utils.data.Dataset):
    """It has what no process can send."""

    def __init__(self, computes=False):
        self.lock, self.computes = threading.Lock(), computes

    def __len__(self):
        return 2

    def __getitem__(self, index):
        value = torch.tensor(float(index))
        return value.sin() if self.computes else (value, torch.zeros(1000, 300), torch.ones(2))


@pytest.mark.slow
def test_what_cannot_be_sent_is_forked():
    """Data there may be tensors, and computing with them is refused."""
    (batch,) = DataLoader(Locked(), batch_size=2, num_workers=1)
    assert batch[0].tolist() == [0, 1] and batch[1].shape == (2, 1000, 300)
    assert (batch[2] + 1).tolist() == [[2, 2], [2, 2]]
    with pytest.raises(RuntimeError, match=r"It is forked because .*cannot pickle '_thread.lock'"):
        list(DataLoader(Locked(computes=True), num_workers=1))
    with pytest.raises(RuntimeError, match="forked because multiprocessing_context is 'fork'"):
        list(DataLoader(loaded.Rows(), num_workers=1, multiprocessing_context="fork"))
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock'") as caught:
        iter(DataLoader(Locked(), num_workers=1, multiprocessing_context="forkserver"))
    assert "cannot be sent to another process" in caught.value.__notes__[0]


def counting(count, lock):
    """A dataset that counts what its workers load, in memory that they share."""

    class Counting(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            with lock:
                count.value += 1
            return torch.tensor(float(index)).square()

    return Counting()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_locks_of_processes_are_inherited(method):
    processes = torch.multiprocessing.get_context(method)
    count, lock = processes.Value("i", 0), processes.Lock()
    loader = DataLoader(counting(count, lock), multiprocessing_context=method, **WORKERS)
    assert [batch.item() for batch in loader] == [0, 1, 4, 9] and count.value == 4


WORKERS_OF_A_PROCESS = """
import jaxgrad as torch

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return torch.tensor(index).square()

def train(rank):
    print(*[batch.item() for batch in torch.utils.data.DataLoader(Squares(), num_workers=1)])

if __name__ == "__main__":
    torch.multiprocessing.spawn(train)
"""


@pytest.mark.slow
def test_classes_of_the_script_in_a_process_that_has_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKERS_OF_A_PROCESS)
    command = [sys.executable, str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    assert ended.stdout.split() == ["0", "1", "4"], ended.stderr


@pytest.mark.slow
def test_nested_and_masked_tensors_go_to_workers():
    nested = [torch.nested.nested_tensor([torch.ones(size)]) for size in (1, 2)]
    masked = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    half = torch.tensor([1 + 2j], dtype=torch.complex32)

    def facts(samples):
        (sample,) = samples
        return type(sample).__name__, sample.clone().is_nested, str(sample.clone())

    loader = DataLoader([*nested, masked, half], collate_fn=facts, num_workers=1)
    here = [facts([sample]) for sample in (*nested, masked, half)]
    assert list(loader) == here and here[0][1]


@pytest.mark.parametrize(
    ("worker", "seed", "words"),
    [
        (0, 0, [2968811710, 3677149159, 745650761, 2884920346]),
        (4, 13434589827475259383, [2884386318, 1088094898, 3523808998, 3860348662]),
        (6, 6269787272229682235, [2548857855, 1216457374, 1012973562, 2999759647]),
    ],
)
def test_words_that_seed_numpy(worker, seed, words):
    """Those that PyTorch gives."""
    assert torch.utils.data._utils.worker._generate_state(seed, worker) == words


def draws():
    return random.random(), np.random.rand(), torch.rand(()).item(), torch.initial_seed()


@pytest.mark.slow
def test_seeds_of_workers():
    """Each has its own, base seed and number; `worker_init_fn` may set others."""
    seen = []

    class Draws(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return *draws(), get_worker_info().seed

    def load(**options):
        generator = torch.Generator().manual_seed(1)
        loader = DataLoader(Draws(), generator=generator, **options, **WORKERS)
        return [[number.item() for number in batch] for batch in loader]

    first = load()
    assert first == load() and first[1][4] == first[0][4] + 1
    assert all(row[3] == row[4] for row in first)
    for column in zip(*first[:2], strict=True):
        assert len(set(column)) == 2
    again = load(worker_init_fn=lambda number: (random.seed(number), torch.manual_seed(7)))
    random.seed(0)
    torch.manual_seed(7)
    assert (again[0][0], again[0][2]) == (random.random(), torch.rand(()).item())
    assert again[0][1] == first[0][1] and not seen


def test_workers_have_the_settings_of_the_parent(monkeypatch, tmp_path):
    """Those of now, not of the time when the fork server began."""
    list(DataLoader(loaded.Surroundings(), num_workers=1, collate_fn=loaded.first))
    monkeypatch.setenv("LOADED", "yes")
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float64)
    try:
        (surroundings,) = DataLoader(loaded.Surroundings(), num_workers=1, collate_fn=loaded.first)
    finally:
        torch.set_default_dtype(torch.float32)
    assert surroundings[0].dtype is surroundings[1] is torch.float64
    assert surroundings[2:] == ("yes", str(tmp_path))


def test_functions_that_users_add_for_their_classes():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    def join(samples, *, collate_fn_map=None):
        return torch.tensor([sample.degrees for sample in samples]) + 273

    known = torch.utils.data._utils.collate.default_collate_fn_map
    known[Celsius] = join
    try:
        data = [(Celsius(degrees), "name") for degrees in range(4)]
        for workers in (0, 1):
            batches = list(DataLoader(data, batch_size=2, num_workers=workers))
            assert [(b.tolist(), names) for b, names in batches] == [
                ([273, 274], ("name", "name")),
                ([275, 276], ("name", "name")),
            ]
    finally:
        del known[Celsius]


def test_pinning(monkeypatch):
    """Where there is an accelerator, batches of classes with the method pin themselves."""
    loader = DataLoader(range(2), collate_fn=loaded.Pins, pin_memory=True, **WORKERS)
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert [type(batch) for batch in loader] == [loaded.Pins] * 2
    monkeypatch.setattr("jaxgrad.utils.data.dataloader.has_accelerator", lambda: True)
    pin = torch.utils.data._utils.pin_memory.pin_memory
    place = "jaxgrad.utils.data._utils.pin_memory.accelerator"
    monkeypatch.setattr(place, lambda: torch.device("cpu"))
    assert list(loader) == [{"pinned": [0]}, {"pinned": [1]}]
    x = torch.ones(2)
    assert pin([x, {"a": (x, "text")}])[1]["a"] == (x, "text")


def test_loaders_in_threads():
    results = {}

    def load(number):
        loader = DataLoader(loaded.Rows(), batch_size=5, **WORKERS)
        results[number] = [b["place"][0].tolist()[0] for b in loader]

    threads = [threading.Thread(target=load, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(hangs.LIMIT)
    assert results == {0: [0, 5], 1: [0, 5], 2: [0, 5]} and processes() == []


def test_loaders_inside_of_each_other():
    outer = DataLoader(range(4), batch_size=2, **WORKERS)
    pairs = [(a.tolist(), b.tolist()) for a in outer for b in outer]
    batches = [0, 1], [2, 3]
    assert pairs == [(a, b) for a in batches for b in batches]

    class Nested(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return list(DataLoader(range(2), num_workers=self.workers))

    Nested.workers = 0
    assert [int(number) for number in next(iter(DataLoader(Nested(), num_workers=1)))] == [0, 1]
    Nested.workers = 1  # as in PyTorch
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        next(iter(DataLoader(Nested(), num_workers=1)))


@pytest.mark.parametrize("options", [{"persistent_workers": True}, {}])
def test_nothing_is_left_of_an_iteration(options):
    """Neither files nor threads, also where the loop is left; memory is in tests/benchmarks."""
    loader = DataLoader(loaded.Memory(), **options, **WORKERS)

    def counts():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(processes())

    def iterate():
        next(iter(loader))
        list(loader)

    iterate()
    first = counts()
    for _ in range(2):
        iterate()
    assert counts() == first


SCRIPT = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        return torch.tensor(float(index)).square() * scale

scale = 2
print("begins", flush=True)
loader = DataLoader(Squares(), batch_size=2, num_workers=2)
for number, batch in enumerate(loader):
    print(batch.tolist(), flush=True)
    if number == 1:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("no_signal_is_ignored")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_a_script_that_is_ended_leaves_no_process(tmp_path, ending):
    """Under jaxgrad.compat, whose `torch` the workers get too; the script runs once."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "jaxgrad", "run", str(script), ending],
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert done.stdout.splitlines()[:3] == ["begins", "[0.0, 2.0]", "[8.0, 18.0]"], done.stderr
    assert done.stdout.count("begins") == 1
    if ending == "SIGINT":
        assert done.returncode in (130, -signal.SIGINT) and "KeyboardInterrupt" in done.stderr
    else:
        assert done.returncode == -signal.SIGKILL
    # `run` has read to the end of the pipes, which any process that is left would hold open


@pytest.mark.slow
def test_scripts_from_the_command_line():
    code = "import jaxgrad.compat; jaxgrad.compat.install()\n" + SCRIPT.replace(
        "== 1:", "== 3: break"
    )
    code = code.partition("break")[0] + "break\n"
    for arguments, text in (["-c", code], None), (["-"], code):
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=hangs.LIMIT
        )
        assert done.stdout.splitlines()[:3] == ["begins", "[0.0, 2.0]", "[8.0, 18.0]"], done.stderr


def test_exceptions_for_other_processes():
    """PyTorch's class for them, and the words of its text."""
    wrapper = torch._utils.ExceptionWrapper
    for kind, wanted in ((ValueError, ValueError), (KeyError, KeyError), (TwoParts, RuntimeError)):
        try:
            raise kind("a", "b") if kind is TwoParts else kind("a")
        except Exception:
            wrapped = wrapper(where="in worker 3")
        text = f"Caught {kind.__name__} in worker 3.\nOriginal Traceback"
        with pytest.raises(wanted, match=text):
            wrapped.reraise()


class TwoParts(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)
