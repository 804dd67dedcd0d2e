"""Datasets, samplers and random splits, with the results and errors that PyTorch 2.13 gives."""

import collections
import itertools
import warnings

import numpy as np
import pytest
from helpers import loaded

import jaxgrad as torch
from jaxgrad.utils import data


def test_datasets_of_datasets():
    joined = data.ConcatDataset([[1, 2], [3]])
    assert (joined[2], joined[-1], len(joined), joined.cumulative_sizes) == (3, 3, 3, [2, 3])
    assert list(data.ChainDataset([loaded.Count()] * 2)) == [0, 1, 2, 3, 4] * 2
    assert len(loaded.Count() + loaded.Count()) == 10
    assert isinstance(data.Subset([1, 2], [0]) + [3], data.ConcatDataset)
    assert data.Subset([5, 6, 7], [2, 0]).__getitems__([0, 1]) == [7, 5]
    assert data.StackDataset([1, 2], [2, 3])[1] == (2, 3)
    assert data.StackDataset(a=[1], b=[2]).__getitems__([0]) == [{"a": 1, "b": 2}]
    rows = data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    assert len(rows) == 3 and rows[1][0].item() == 1 and rows[1][1].shape == (2,)
    for kind in (data.Dataset, data.Subset, data.Sampler, data.DataLoader):
        assert kind[int].__origin__ is kind


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: data.TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch"),
        (lambda: data.StackDataset(), ValueError, "At least one dataset"),
        (lambda: data.StackDataset([1], [1, 2]), ValueError, "Size mismatch"),
        (lambda: data.StackDataset([1], a=[1]), ValueError, "Supported either"),
        (lambda: data.ConcatDataset([]), AssertionError, "should not be an empty iterable"),
        (lambda: data.ConcatDataset([loaded.Count()]), AssertionError, "does not support"),
        (lambda: data.ConcatDataset([[1], [2]])[-3], ValueError, "absolute value of index"),
        (lambda: list(data.ChainDataset([[1]])), AssertionError, "only supports IterableDataset"),
        (lambda: data.Dataset()[0], NotImplementedError, "should implement __getitem__"),
        (lambda: data.random_split(range(10), [3, 3]), ValueError, "Sum of input lengths"),
        (lambda: data.random_split(range(10), [0.5, 0.6]), ValueError, "Sum of input lengths"),
        (lambda: data.random_split(range(10), [-0.5, 0.6, 0.9]), ValueError, "at index 0"),
        (lambda: data.random_split(range(10), [-1, 11]), ValueError, "must not be negative"),
        (lambda: data.RandomSampler([]), ValueError, "got num_samples=0"),
        (lambda: data.RandomSampler([1], num_samples=-1), ValueError, "got num_samples=-1"),
        (lambda: data.RandomSampler([1], replacement=3), TypeError, "got replacement=3"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, r"have shape \(1, 1\)"),
        (lambda: data.WeightedRandomSampler([1.0], 0), ValueError, "got num_samples=0"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "got batch_size=0"),
        (lambda: data.BatchSampler([1], 1, 3), ValueError, "got drop_last=3"),
        (lambda: data.DistributedSampler(range(7), 3, 3), ValueError, "Invalid rank 3"),
        (lambda: data.DistributedSampler(range(7)), ValueError, "init_process_group"),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_splits_have_all_samples_once():
    parts = data.random_split(range(10), [0.35, 0.35, 0.3])
    assert [len(part) for part in parts] == [4, 3, 3]
    assert sorted(sample for part in parts for sample in part) == list(range(10))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        assert [len(part) for part in data.random_split(range(3), [0.9, 0.1])] == [3, 0]

    def seeded():
        return data.random_split(range(20), [10, 10], torch.Generator().manual_seed(1))[0].indices

    assert seeded() == seeded() != list(range(10))


def test_samplers():
    twice = list(data.RandomSampler(range(5), num_samples=10))
    assert sorted(twice[:5]) == sorted(twice[5:]) == [0, 1, 2, 3, 4]
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=70))
    assert len(drawn) == 70 and set(drawn) == {0, 1, 2}
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(data.BatchSampler(range(5), 2, drop_last)) for drop_last in (True, False)] == [2, 3]
    # 4,000 draws of probability 1/4: the standard deviation of the share is 0.007
    weighted = list(data.WeightedRandomSampler([3.0, 1.0], 4000))
    assert abs(np.mean(weighted) - 0.25) < 0.035
    assert sorted(data.WeightedRandomSampler([3.0, 1.0], 2, replacement=False)) == [0, 1]


def test_a_seed_decides_the_order():
    torch.manual_seed(3)
    first = list(data.RandomSampler(range(20))), list(data.RandomSampler(range(20)))
    torch.manual_seed(3)
    again = list(data.RandomSampler(range(20))), list(data.RandomSampler(range(20)))
    assert first == again and first[0] != first[1]


def test_distributed_sampler():
    def parts(size, count, **options):
        return [
            list(data.DistributedSampler(range(size), count, i, **options)) for i in range(count)
        ]

    assert parts(7, 3, shuffle=False) == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert parts(7, 3, shuffle=False, drop_last=True) == [[0, 3], [1, 4], [2, 5]]
    assert parts(2, 5, shuffle=False) == [[0], [1], [0], [1], [0]]
    assert sorted(index for part in parts(6, 3) for index in part) == list(range(6))
    sampler = data.DistributedSampler(range(50), 1, 0)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert orders[0] == orders[2] != orders[1]


Point = collections.namedtuple("Point", "x y")


def test_collation():
    collate = data.default_collate
    point = collate([Point(1, 2.0), Point(3, 4.0)])
    assert type(point) is Point and point.x.dtype is torch.int64 and point.y.dtype is torch.float64
    assert point.x.tolist() == [1, 3]
    assert collate([True, False]).dtype is torch.bool
    # numbers of several kinds, and arrays of several dtypes, are joined as PyTorch does it
    for batch, dtype in (
        ([1, 2.5], torch.float32),
        ([1.5, 2], torch.float64),
        ([np.float32(1), np.int64(2)], torch.float32),
        ([np.ones(2, np.float32), np.ones(2, np.int64)], torch.float32),
        ([torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.int64)], torch.int64),
        ([torch.ones(2), torch.ones(2).long()], torch.float32),
        ([np.float32(1), 2.5], torch.float32),
    ):
        assert collate(batch).dtype is dtype, batch
    assert collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    mixed = collate([{"a": (1, "s")}, {"a": (2, "t")}])
    assert mixed["a"][0].tolist() == [1, 2] and mixed["a"][1] == ("s", "t")
    assert collate([(b"a",)]) == [(b"a",)]
    assert collate([(("a", "b"), "c")]) == [[("a",), ("b",)], ("c",)]
    assert collate(["a", "b"]) == ["a", "b"]
    assert type(collate([collections.OrderedDict(a=1)])) is collections.OrderedDict
    for kind, x in (
        ("sparse", torch.eye(2).to_sparse()),
        ("sparse", torch.eye(2).to_sparse_csr()),
        ("nested", torch.nested.nested_tensor([torch.ones(2)])),
        ("nested", torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged)),
    ):
        match = f"Batches of {kind} tensors are not currently supported by the default collate_fn"
        with pytest.raises(RuntimeError, match=match):
            collate([x, x])
    leaf = torch.ones(2, requires_grad=True)
    collate([leaf, leaf * 2]).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    for batch, error, words in (
        ([object()], TypeError, "found <class 'object'>"),
        ([None], TypeError, "found <class 'NoneType'>"),
        ([1j], TypeError, "found <class 'complex'>"),
        ([np.array("a")], TypeError, "found <U1"),
        ([np.datetime64(1, "s")], TypeError, "found <class 'numpy.datetime64'>"),
        ([np.timedelta64(1, "s")], TypeError, r"found timedelta64\[s\]"),
        ([torch.ones(2), np.ones(2)], TypeError, "expected Tensor as element 1 in argument 0"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        ([2**70], ValueError, "Overflow when unpacking long long"),
        ([[1, 2], [1]], RuntimeError, "each element in list of batch should be of equal size"),
        (
            [torch.ones(2), torch.ones(3)],
            RuntimeError,
            r"got \[2\] at entry 0 and \[3\] at entry 1",
        ),
    ):
        with pytest.raises(error, match=words):
            collate(batch)


def test_conversion():
    array = np.ones(2)
    tree = data.default_convert([array, {"a": np.float32(1), "b": 3}, (1, array), Point(1, array)])
    assert tree[0].dtype is torch.float64 and tree[1]["a"].item() == 1 and tree[1]["b"] == 3
    assert type(tree[2]) is list and type(tree[3]) is Point
    assert tree[3].y.tolist() == [1, 1]
    text = np.array("s")
    assert data.default_convert(text) is text


def test_loading_in_this_process():
    numbers = list(range(10))
    assert [b.tolist() for b in data.DataLoader(numbers[:5], batch_size=2)] == [[0, 1], [2, 3], [4]]
    loader = data.DataLoader(numbers[:5], batch_size=2, drop_last=True)
    assert len(loader) == len(list(loader)) == 2
    assert list(data.DataLoader(numbers[:3], batch_size=None)) == [0, 1, 2]
    assert [b.tolist() for b in data.DataLoader({"a": 1}, sampler=["a"])] == [[1]]
    assert [b.tolist() for b in data.DataLoader(numbers, batch_sampler=[[1, 2], [7]])] == [
        [1, 2],
        [7],
    ]
    assert [b.tolist() for b in data.DataLoader(loaded.Count(), batch_size=2)] == [
        [0, 1],
        [2, 3],
        [4],
    ]
    assert len(data.DataLoader(loaded.Count(), batch_size=2)) == 3
    assert list(data.DataLoader(numbers[:4], batch_size=2, collate_fn=sum)) == [1, 5]
    assert data.get_worker_info() is None


def test_a_seeded_generator_decides_the_order_of_a_loader():
    def order():
        generator = torch.Generator().manual_seed(5)
        loader = data.DataLoader(range(12), 4, shuffle=True, generator=generator)
        return [batch.tolist() for _ in range(2) for batch in loader]

    orders = order()
    assert orders == order() and orders[:3] != orders[3:]


def test_a_length_that_is_too_small_is_told():
    class Long(loaded.Count):
        def __len__(self):
            return 3

    loader = data.DataLoader(Long())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(loader) == 3 and len(list(loader)) == 5
    assert ["was reported to be 3" in str(warning.message) for warning in caught] == [True, True]


NUMBERS = list(range(10))


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
        ({"num_workers": 1, "prefetch_factor": -2}, ValueError, "should be non-negative"),
        ({"persistent_workers": True}, ValueError, "needs num_workers > 0"),
        ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually"),
        ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"batch_size": 0}, ValueError, "got batch_size=0"),
        ({"batch_size": "a"}, ValueError, "got batch_size='a'"),
        ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process"),
        ({"num_workers": 1, "multiprocessing_context": "bad"}, ValueError, "valid start method"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "valid context object"),
        ({"shuffle": True, "dataset": loaded.Count()}, ValueError, "unspecified shuffle option"),
        ({"sampler": [1], "dataset": loaded.Count()}, ValueError, "unspecified sampler option"),
        ({"batch_sampler": [[1]], "dataset": loaded.Count()}, ValueError, "batch_sampler option"),
        ({"shuffle": True, "dataset": []}, ValueError, "got num_samples=0"),
    ],
)
def test_options_that_a_loader_refuses(options, error, words):
    with pytest.raises(error, match=words):
        data.DataLoader(**{"dataset": NUMBERS} | options)


class Repeating(data.DataLoader):
    """As model collections keep one iterator for all epochs."""

    def __init__(self, *args, **options):
        self.batch_size = None  # before the loader itself decides
        super().__init__(*args, **options)
        self._DataLoader__initialized = False
        self.batch_sampler = [self.batch_sampler, self.batch_sampler]
        self.batch_sampler = list(itertools.chain.from_iterable(self.batch_sampler))
        self._DataLoader__initialized = True
        self.iterator = super().__iter__()

    def __iter__(self):
        return (next(self.iterator) for _ in range(2))


def test_loaders_of_loaders():
    loader = Repeating(NUMBERS[:4], batch_size=2)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    assert isinstance(loader.iterator, data.dataloader._BaseDataLoaderIter)
    with pytest.raises(ValueError, match="batch_sampler attribute should not be set"):
        loader.batch_sampler = []


def test_what_decides_the_batches_is_fixed():
    loader = data.DataLoader(NUMBERS)
    for name in ("batch_size", "dataset", "sampler"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 3)
    loader.num_workers = 0
    with pytest.raises(AssertionError, match="timeout"):
        iter(data.DataLoader(NUMBERS, timeout=3))


class Image(torch.Tensor):
    """A tensor of a user's class."""


def test_batches_of_tensors_of_a_class_are_of_that_class():
    """As in PyTorch, which stacks them by `torch.stack`."""
    x = torch.ones(2).as_subclass(Image)
    assert type(data.default_collate([x, x])) is Image
    assert type(next(iter(data.DataLoader([x, x, x], batch_size=2)))) is Image
    assert type(data.default_collate([torch.nn.Parameter(torch.ones(2))] * 2)) is torch.Tensor


def test_functions_of_collate_by_their_names():
    collate = data._utils.collate
    assert collate.collate_tensor_fn([torch.ones(2)] * 2).shape == (2, 2)
    assert collate.collate_float_fn([1.0, 2.0]).dtype is torch.float64
    assert collate.collate_int_fn([1, 2]).tolist() == [1, 2]
    assert collate.collate_str_fn(["a"]) == ["a"]
    assert collate.collate_numpy_array_fn([np.ones(2)]).shape == (1, 2)
    assert collate.np_str_obj_array_pattern.search(np.array(["abc"]).dtype.str)
    assert not collate.np_str_obj_array_pattern.search(np.ones(2).dtype.str)


@pytest.mark.parametrize("rows", [[1, 2], np.ones(2)])
def test_tensor_dataset_takes_tensors(rows):
    with pytest.raises(TypeError, match="TensorDataset takes tensors, but got"):
        data.TensorDataset(rows)


def test_generators_are_checked():
    loader = data.DataLoader([1, 2], shuffle=True, generator=3)
    with pytest.raises(TypeError, match=r"generator must be a torch\.Generator, not int"):
        next(iter(loader))
