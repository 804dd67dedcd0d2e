"""Pipes of data, against PyTorch."""

from helpers.as_torch import as_torch


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
