"""Pipes of data, against PyTorch."""

import copy
import pickle

import pytest
from helpers.as_torch import as_torch

import jaxgrad

data = jaxgrad.utils.data
pipes, maps = data.datapipes.iter, data.datapipes.map


@as_torch(
    "{'items': [[4, 8], [4, 8]], 'words': 'Doubled', 'new': 2, "
    "'old': 'RuntimeError', 'is a method': [True, False], 'item': 5, 'taken': 'Exception'}"
)
def test_pipes_have_others_as_methods(torch):
    data = torch.utils.data

    class Doubled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for item in self.source:
                yield 2 * item

    class Kept(data.MapDataPipe):
        def __init__(self, source):
            self.source = source

        def __getitem__(self, index):
            return self.source[index]

    try:
        data.functional_datapipe("with_doubled_items")(Doubled)
        data.functional_datapipe("kept")(Kept)
        pipe = Doubled([1, 2])
        twice = pipe.with_doubled_items()
        items = [list(twice), list(twice)]
        old = iter(pipe)
        next(old)
        new = next(iter(pipe))
        return {
            "items": items,
            "words": repr(twice).rpartition(".")[2],
            "new": new,
            "old": name_of_error(next, old),
            "is a method": ["with_doubled_items" in dir(pipe), hasattr(pipe, "tripled")],
            "item": Kept([4, 5]).kept()[1],
            "taken": name_of_error(data.functional_datapipe("kept"), Kept),
        }
    finally:
        data.IterDataPipe.functions.pop("with_doubled_items", None)
        data.MapDataPipe.functions.pop("kept", None)


def name_of_error(function, *args):
    """The name of the class of the error of a call."""
    try:
        function(*args)
    except Exception as raised:
        return type(raised).__name__


# ---- the pipes of PyTorch: what it answers stands in the tables


def wrapped(elements=5):
    return pipes.IterableWrapper(range(elements) if isinstance(elements, int) else elements)


def mapped(elements=5):
    return maps.SequenceWrapper(range(elements) if isinstance(elements, int) else elements)


def double(x):
    return 2 * x


def is_even(x):
    return x % 2 == 0


def rest(x):
    return x % 3


def total(a, b):
    return a + b


PAIRS, RECORDS = [(1, 2), (3, 4)], [{"a": 1, "b": 2}]

# what makes a pipe, its elements, and its length or None
ITERATED = {
    "map": (lambda: wrapped().map(double), [0, 2, 4, 6, 8], 5),
    "map, a column": (lambda: wrapped(PAIRS).map(double, 0), [(2, 2), (6, 4)], 2),
    "map, columns": (lambda: wrapped(PAIRS).map(total, input_col=[0, 1]), [(3,), (7,)], 2),
    "map, a new column": (
        lambda: wrapped(PAIRS).map(total, input_col=[0, 1], output_col=-1),
        [(1, 2, 3), (3, 4, 7)],
        2,
    ),
    "map, keys": (
        lambda: wrapped(RECORDS).map(total, input_col=["a", "b"], output_col="c"),
        [{"a": 1, "b": 2, "c": 3}],
        1,
    ),
    "filter": (lambda: wrapped().filter(is_even), [0, 2, 4], None),
    "filter, a column": (lambda: wrapped([(1, 2), (2, 3)]).filter(is_even, 0), [(2, 3)], None),
    "batch": (lambda: wrapped().batch(2), [[0, 1], [2, 3], [4]], 3),
    "batch, drop_last": (lambda: wrapped().batch(2, drop_last=True), [[0, 1], [2, 3]], 2),
    "unbatch": (lambda: wrapped().batch(2).unbatch(), [0, 1, 2, 3, 4], None),
    "unbatch, all levels": (lambda: wrapped([[[1], [2]], 3]).unbatch(-1), [1, 2, 3], None),
    "groupby": (lambda: wrapped(7).groupby(rest), [[0, 3, 6], [1, 4], [2, 5]], None),
    "groupby, sizes": (
        lambda: wrapped(9).groupby(rest, group_size=2),
        [[0, 3], [1, 4], [2, 5], [6], [7], [8]],
        None,
    ),
    "groupby, keys": (
        lambda: wrapped(4).groupby(rest, keep_key=True),
        [(0, [0, 3]), (1, [1]), (2, [2])],
        None,
    ),
    "groupby, a small buffer": (
        lambda: wrapped(8).groupby(rest, buffer_size=4, group_size=3, drop_remaining=True),
        [[6], [7]],
        None,
    ),
    "concat": (lambda: wrapped(2).concat(wrapped(3)), [0, 1, 0, 1, 2], 5),
    "zip": (lambda: wrapped(2).zip(wrapped(3)), [(0, 0), (1, 1)], 2),
    "mux": (lambda: wrapped(2).mux(wrapped(3)), [0, 0, 1, 1], 4),
    "shuffle, off": (lambda: wrapped(3).shuffle().set_shuffle(False), [0, 1, 2], 3),
    "sharding_filter": (lambda: wrapped(3).sharding_filter(), [0, 1, 2], 3),
    "sampler": (lambda: pipes.Sampler(mapped(3)), [0, 1, 2], 3),
    "collate": (lambda: wrapped(4).batch(2).collate(sum), [1, 5], 2),
}


@pytest.mark.parametrize("name", ITERATED)
def test_pipes_that_are_iterated_over(name):
    make, wanted, length = ITERATED[name]
    pipe = make()
    for other in (copy.deepcopy(pipe), pickle.loads(pickle.dumps(pipe)), pipe):
        assert list(other) == wanted
    if length is not None:
        assert len(pipe) == length
        return
    with pytest.raises(TypeError):
        len(pipe)


def test_random_orders_of_a_seed():
    orders_by_seed = (
        (wrapped(10).shuffle().set_seed(3), [3, 9, 2, 4, 7, 6, 0, 8, 1, 5]),
        (wrapped(10).shuffle(buffer_size=3).set_seed(5), [2, 1, 3, 4, 5, 7, 8, 9, 0, 6]),
        (mapped(8).shuffle().set_seed(3), [0, 5, 7, 2, 1, 6, 4, 3]),
    )
    for pipe, order in orders_by_seed:
        assert list(pipe) == order and sorted(pipe) == sorted(order)


WITH_INDICES = {
    "map": (lambda: mapped(3).map(double), [0, 2, 4]),
    "batch": (lambda: mapped(3).batch(2), [[0, 1], [2]]),
    "concat": (lambda: mapped(2).concat(mapped(1)), [0, 1, 0]),
    "zip": (lambda: mapped(2).zip(mapped(3)), [(0, 0), (1, 1)]),
    "dict": (lambda: maps.SequenceWrapper({0: "a"}), ["a"]),
}


@pytest.mark.parametrize("name", WITH_INDICES)
def test_pipes_with_samples_by_index(name):
    make, wanted = WITH_INDICES[name]
    pipe = make()
    assert [pipe[place] for place in range(len(pipe))] == wanted
    with pytest.raises(LookupError):
        pipe[len(pipe)]


REFUSED = [
    (lambda: wrapped().map(double, output_col=1), ValueError, "`output_col` must be None when"),
    (lambda: wrapped().map(3), TypeError, "A callable function is expected"),
    (lambda: list(wrapped().filter(double)), ValueError, "Boolean output is required"),
    (lambda: wrapped().batch(0), AssertionError, "Batch size is required to be larger than 0"),
    (lambda: list(wrapped([[1]]).unbatch(2)), IndexError, "exceeds the depth of the pipe"),
    (lambda: list(wrapped([[1]]).unbatch(-2)), ValueError, "unbatch_level must be -1 or >= 0"),
    (
        lambda: list(wrapped(9).groupby(rest, buffer_size=3, group_size=3)),
        RuntimeError,
        "Failed to group items",
    ),
    (pipes.Concater, ValueError, "Expected at least one DataPipe"),
    (lambda: wrapped().concat([1]), TypeError, "Expected all inputs to be `IterDataPipe`"),
    (lambda: wrapped().zip([1]), TypeError, "All inputs are required to be `IterDataPipe`"),
    (lambda: wrapped().fork(0), ValueError, "Expected `num_instances` larger than 0"),
    (lambda: wrapped().fork(2, copy="x"), ValueError, "Unknown copy method"),
    (lambda: list(wrapped().fork(2, buffer_size=3)[0]), BufferError, "is insufficient"),
    (lambda: list(wrapped().demux(2, double)[0]), ValueError, "should be between 0 and 1"),
    (lambda: wrapped().shuffle(buffer_size=0), AssertionError, "buffer_size should be larger"),
    (lambda: wrapped().sharding_filter().apply_sharding(2, 2), ValueError, "should be smaller"),
    (lambda: pipes.FileOpener([], mode="w"), ValueError, "Invalid mode w"),
    (lambda: list(pipes.FileLister("/none/here")), FileNotFoundError, "none/here"),
    (lambda: wrapped().none(), AttributeError, "has no attribute 'none'"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED)
def test_errors_of_pipes(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def parity(x):
    return None if x == 3 else x % 2


def test_pipes_that_share_another():
    first, second = wrapped(3).fork(2)
    assert list(zip(first, second, strict=True)) == [(0, 0), (1, 1), (2, 2)]
    assert list(first) == list(second) == [0, 1, 2] and len(first) == 3
    iterator = iter(first)
    with pytest.warns(UserWarning, match="child DataPipes are not exhausted"):
        assert list(first) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="has been invalidated"):
        next(iterator)
    even, odd = wrapped(5).demux(2, parity, drop_none=True)
    assert list(even) == [0, 2, 4] and list(odd) == [1]
    deep, other = (next(iter(pipe)) for pipe in wrapped([[1]]).fork(2, copy="deep"))
    assert deep == other and deep is not other


def test_a_lambda_warns():
    with pytest.warns(UserWarning, match="Lambda function is not supported by pickle"):
        wrapped().map(lambda x: x)


def test_files(tmp_path):
    for name in ("a.txt", "b.csv", "inner/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name[0] * 3)
    ends = [path[-5:] for path in pipes.FileLister(tmp_path, "*.txt", recursive=True)]
    assert ends == ["a.txt", "c.txt"]
    opened = pipes.FileLister(tmp_path).open_files(mode="rb").read_from_stream(2)
    assert [content for _, content in opened] == [b"aa", b"a", b"bb", b"b"]


def test_graphs():
    pipe = wrapped(6).sharding_filter().map(double).zip(wrapped(6))
    graph = data.graph.traverse_dps(pipe)
    assert len(data.graph_settings.get_all_graph_pipes(graph)) == 5
    assert list(data.graph_settings.apply_sharding(pipe, 2, 1)) == [(2, 0), (6, 1), (10, 2)]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        shuffled = data.graph_settings.apply_shuffle_settings(wrapped(3), True)
    assert type(shuffled) is pipes.Shuffler


def orders(loader):
    return [[x.item() for x in loader] for _ in range(2)]


def test_loaders_of_pipes():
    pipe = wrapped(8).shuffle().sharding_filter()
    loader = data.DataLoader(pipe, shuffle=True, generator=jaxgrad.Generator().manual_seed(1))
    first, second = orders(loader)
    assert sorted(first) == sorted(second) == [*range(8)] and first != second
    again = data.DataLoader(pipe, shuffle=True, generator=jaxgrad.Generator().manual_seed(1))
    assert orders(again) == [first, second]
    assert orders(data.DataLoader(pipe, shuffle=False))[0] == [*range(8)]
    assert orders(data.DataLoader(mapped(3).map(double)))[0] == [0, 2, 4]


@pytest.mark.slow
def test_workers_divide_a_pipe():
    pipe = wrapped(8).shuffle().sharding_filter()
    loader = data.DataLoader(pipe, shuffle=True, num_workers=2, persistent_workers=True)
    first, second = orders(loader)
    assert sorted(first) == sorted(second) == [*range(8)] and first != second


def doubled(number):
    return 2 * number


def added(first, second):
    return first + second


def is_late(number):
    return int(number > 40)


@pytest.mark.parametrize("kind", ["in a row", "behind a fork", "behind a zip"])
def test_parts_of_parts_are_refused(kind):
    """They would lose elements; each branch may be divided."""
    pipe = wrapped(13)
    if kind == "in a row":
        twice = pipe.sharding_filter().sharding_filter()
    elif kind == "behind a fork":
        first, second = pipe.sharding_filter().fork(2)
        twice = second.zip(first.sharding_filter())
    else:
        first, second = pipe.fork(2)
        twice = second.zip(first.sharding_filter()).sharding_filter()
    match = "Sharding twice on a single pipeline is likely unintended and will cause data loss"
    with pytest.raises(RuntimeError, match=match):
        data.graph_settings.apply_sharding(twice, 3, 0)
    first, second = wrapped(13).fork(2)
    both = first.sharding_filter().zip(second.sharding_filter())
    both = data.graph_settings.apply_sharding(both, 3, 0)
    assert list(both) == [(number, number) for number in range(0, 13, 3)]


def test_how_many_elements_wait():
    """A fork counts how far it is ahead; the other kind, what waits for all others."""
    first = iter(wrapped(10).fork(2, buffer_size=3)[0])
    assert [next(first) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(BufferError, match="buffer size 3 is insufficient"):
        next(first)
    late = wrapped(50).demux(2, is_late, buffer_size=3)[1]
    with pytest.raises(BufferError, match="buffer size 3 is insufficient"):
        list(late)


@pytest.mark.parametrize("size", [0, 4])
def test_groups_fit_into_the_buffer(size):
    with pytest.raises(AssertionError, match="group_size must be > 0 and <= buffer_size"):
        wrapped(5).groupby(doubled, group_size=size, buffer_size=3)


@pytest.mark.parametrize(
    ("function", "columns", "text"),
    [
        (added, 0, "added takes 2 positional parameters, but 1 are required"),
        (doubled, [0, 1], "doubled takes 1 parameters, but 2 are required"),
        (added, None, "added takes 2 positional parameters, but 1 are required"),
    ],
)
def test_functions_take_as_many_arguments_as_columns(function, columns, text):
    with pytest.raises(ValueError, match=text):
        wrapped(3).map(function, input_col=columns)
    with pytest.raises(ValueError, match=text):
        wrapped(3).filter(function, input_col=columns)
