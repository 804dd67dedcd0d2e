"""Worker processes of a DataLoader. What they do is PyTorch's; the numbers are closed forms."""

import gc
import multiprocessing
import signal
import subprocess
import sys

import loaded
import pytest

import jaxgrad as torch
from jaxgrad.utils.data import DataLoader

WORKERS = {"num_workers": 2}


def processes():
    return [each for each in multiprocessing.active_children() if each.is_alive()]


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


def test_workers_that_persist_serve_again():
    loader = DataLoader(loaded.Rows(), batch_size=5, persistent_workers=True, **WORKERS)
    first = iter(loader)
    next(first)
    known = {each.pid for each in processes()}
    for _ in range(2):
        assert [b["place"][0].tolist()[0] for b in loader] == [0, 5]
    assert {each.pid for each in processes()} == known and len(known) == 2
    with pytest.raises(RuntimeError, match="another iteration of this DataLoader has begun"):
        next(first)
    del first, loader
    assert processes() == []


def test_errors_of_workers():
    loader = DataLoader(
        loaded.Faulty(), sampler=[1, 3, 2, 4, 0], persistent_workers=True, **WORKERS
    )
    found = iter(loader)
    assert next(found).tolist() == [1]
    with pytest.raises(KeyError) as caught:
        next(found)
    text = str(caught.value)
    assert text.startswith("Caught KeyError in DataLoader worker process 1.\n")
    assert 'raise KeyError("three is missing")' in text and "loaded.py" in text
    # the others still come
    assert next(found).tolist() == [2]
    with pytest.raises(Exception, match="in DataLoader worker process 1"):
        next(found)
    assert next(found).tolist() == [0]
    with pytest.raises(StopIteration):
        next(found)
    refusing = DataLoader(loaded.Faulty(), worker_init_fn=loaded.refuse, num_workers=1)
    with pytest.raises(ValueError, match="worker 0 may not begin"):
        next(iter(refusing))
    del loader, found, caught  # the error holds the frame that holds the loader
    gc.collect()
    assert processes() == []


def test_a_worker_that_is_killed():
    loader = DataLoader(loaded.Faulty(), sampler=[0, 5, 1, 2], **WORKERS)
    found = iter(loader)
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"
    ):
        list(found)
    assert processes() == [] and list(found) == []


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


def test_as_they_are_ready():
    found = DataLoader(loaded.Rows(), batch_size=2, in_order=False, **WORKERS)
    assert sorted(b["place"][0].tolist()[0] for b in found) == [0, 2, 4, 6, 8]


def test_forked_workers():
    """What cannot be sent to another process is forked: data there may be tensors, and computing
    with them is refused.
    """
    loader = DataLoader(range(4), batch_size=2, num_workers=1, collate_fn=lambda batch: sum(batch))
    assert list(loader) == [1, 5]

    class Local(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return torch.tensor(float(index)), torch.zeros(1000, 300), torch.tensor([1, 2])

    (batch,) = DataLoader(Local(), batch_size=2, num_workers=1)
    assert batch[0].tolist() == [0, 1] and batch[1].shape == (2, 1000, 300)
    assert (batch[2] + 1).tolist() == [[2, 3], [2, 3]]

    class Computing(Local):
        def __getitem__(self, index):
            return torch.tensor(float(index)).sin()

    with pytest.raises(RuntimeError, match="use the start method"):
        list(DataLoader(Computing(), num_workers=1))
    with pytest.raises((AttributeError, TypeError), match=r"(?i)pickle"):
        iter(DataLoader(Local(), num_workers=1, multiprocessing_context="spawn"))


SCRIPT = """
import os, signal
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        return torch.tensor(float(index)).square()

if __name__ == "__main__":
    loader = DataLoader(Squares(), batch_size=2, num_workers=2)
    for number, batch in enumerate(loader):
        print(batch.tolist(), flush=True)
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupted_script_leaves_no_process(tmp_path):
    """Under jaxgrad.compat, whose `torch` the workers get too."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "jaxgrad", "run", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines()[:2] == ["[0.0, 1.0]", "[4.0, 9.0]"], done.stderr
    assert done.returncode in (130, -signal.SIGINT) and "KeyboardInterrupt" in done.stderr
    # `run` has read to the end of the pipes, which any process that is left would hold open
