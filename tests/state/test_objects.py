"""Walks over Python objects, compared with what was put into them."""

import functools
from types import SimpleNamespace

import jaxgrad
from jaxgrad.state.code import codes, full_cells, global_names, names_in
from jaxgrad.state.objects import ObjectWalk, show_change

STEP = 2.0


def tensors_in(*roots):
    return [value for value in ObjectWalk().walk(*roots) if isinstance(value, jaxgrad.Tensor)]


def test_a_walk_enters_containers_attributes_partials_methods_and_closures():
    tensors = [jaxgrad.zeros(()) for _ in range(6)]

    class Holder:
        def __init__(self):
            self.attribute = tensors[2]

        def method(self):
            return self

    inside = tensors[3]
    roots = [
        {"list": [tensors[0], (tensors[1],)]},
        Holder().method,
        lambda: inside,
        functools.partial(max, tensors[4], key=SimpleNamespace(deep={1: tensors[5]})),
    ]
    assert set(map(id, tensors_in(*roots))) == set(map(id, tensors))


def test_a_walk_visits_each_object_once_even_in_a_cycle():
    tensor = jaxgrad.zeros(())
    first, second = [tensor], [tensor]
    first.append(second)
    second.append(first)
    assert len(tensors_in(first, second)) == 1


def test_a_walk_ends_at_its_limit_and_leaves_out_opaque_types():
    class Short(ObjectWalk):
        opaque, most = (int,), 3

    assert list(Short().walk([1, "a"], ["b", "c"])) == [[1, "a"], "a", ["b", "c"]]


def test_the_names_in_code_are_those_that_it_reads_and_sets():
    around = counted = 1

    def function(value):
        nonlocal counted
        global STORED
        counted = STORED = 2
        value.stored = value.read["word"] * STEP
        value.table["set"] = 1
        return [around for _ in value.other]

    names = [names_in(code) for code in codes(function.__code__)]

    def named(field):
        return set().union(*[getattr(code_names, field) for code_names in names])

    assert named("attributes") == {"read", "other", "table"} and names[0].keys["read"] == {"word"}
    assert (named("globals"), named("stored_globals")) == ({"STEP"}, {"STORED"})
    assert (named("cells"), named("stored_cells")) == ({"around"}, {"counted"})
    assert named("stored_attributes") == {"stored"}
    assert names[0].keys["table"] == set() and names[0].stored_keys == {"table": {"set"}}
    assert "word" in names[0].strings
    assert global_names(function) == ["STEP"]
    assert [cell.cell_contents for cell in full_cells(function)] == [1, 1]


def test_containers_whose_classes_hide_what_they_hold():
    class Hidden(tuple):
        def __len__(self):
            raise NotImplementedError

        def __iter__(self):
            raise NotImplementedError

    inner = jaxgrad.ones(1)
    assert any(value is inner for value in ObjectWalk().walk(Hidden([inner])))


class Unshown(float):
    """A number without a text, as that of a trace."""

    def __repr__(self):
        raise RuntimeError("it is being traced")


def test_a_change_of_a_number_without_a_text():
    assert show_change("s.k", 1.0, 2.0) == "s.k was 1.0, and is 2.0"
    assert show_change("s.k", Unshown(1.0), 2.0) == "s.k is bound to something else"
