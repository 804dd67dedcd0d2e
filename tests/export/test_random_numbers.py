"""Random numbers in exported programs: each call draws them anew."""

import io
import zipfile

import jax
import numpy as np
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.export import Dim, export, load, save
from jaxgrad.utils.checkpoint import checkpoint


def written(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return file


@pytest.fixture
def program():
    shapes = ({0: Dim("batch")},)
    return export(nn.Dropout(0.5), (torch.ones(4, 30),), dynamic_shapes=shapes, with_vjp=True)


@pytest.mark.parametrize("is_read", [False, True])
def test_each_call_draws_of_the_default_generator(program, is_read):
    module = (load(written(program)) if is_read else program).module()
    torch.manual_seed(5)
    x = torch.ones(40, 30, requires_grad=True)
    first, second = module(x), module(x)
    assert {*first.unique().tolist()} == {0.0, 2.0} and not torch.equal(first, second)
    assert 500 < first.count_nonzero() < 700  # of 1,200: 600 expected, deviation 17
    torch.manual_seed(5)
    assert torch.equal(first, module(x))
    first.sum().backward()
    assert torch.equal(x.grad, first)  # the numbers of the forward pass: the factors, 0 and 2


def test_jax_alone_passes_the_key(program):
    with zipfile.ZipFile(written(program)) as file:
        run = jax.export.deserialize(bytearray(file.read("program.jax")))
    inputs = (np.ones((3, 30), np.float32),)
    keys = [np.array([7, 0, call, 0], np.uint32) for call in (0, 1, 0)]
    (first,), (second,), (again,) = [run.call({"random key": key}, inputs)[0] for key in keys]
    assert (first == again).all() and (first != second).any()


def test_draws_of_one_call_differ():
    class Draws(nn.Module):
        def forward(self, x):
            first, second = torch.rand(x.shape[0]), torch.rand(x.shape[0])
            with torch.no_grad():
                kept = F.dropout(x, 0.5)
            return first, second, torch.randperm(5), torch.randint(0, 3, (9,)), kept

    module = export(Draws(), (torch.ones(8),), dynamic_shapes=({0: Dim("n")},)).module()
    first, second, order, integers, kept = module(torch.ones(6))
    assert first.shape == (6,) and not torch.equal(first, second)
    assert ((first >= 0) & (first < 1)).all() and sorted(order.tolist()) == [0, 1, 2, 3, 4]
    assert {*integers.tolist()} <= {0, 1, 2} and {*kept.tolist()} <= {0.0, 2.0}


@pytest.mark.slow
def test_a_checkpoint_repeats_its_numbers():
    def double(x):
        return F.dropout(x * 2, 0.5)

    module = export(
        lambda x: checkpoint(double, x, use_reentrant=False), (torch.ones(64),)
    ).module()
    x = torch.ones(64, requires_grad=True)
    result = module(x)
    result.sum().backward()
    assert {*result.unique().tolist()} == {0.0, 4.0} and torch.equal(x.grad, result)


@pytest.mark.slow
def test_a_compiled_step_draws_at_each_call(program):
    module = program.module()
    compiled = torch.compile(lambda x: module(x))
    x = torch.ones(4, 30)
    assert not torch.equal(compiled(x), compiled(x))
    torch.manual_seed(1)
    expected = module(x)
    torch.manual_seed(1)
    assert torch.equal(compiled(x), expected)


def test_a_program_without_draws_has_no_key(program):
    assert program.draws and "Random numbers" in str(program)
    quiet = export(nn.Dropout().eval(), (torch.ones(2),))
    assert not quiet.draws and "Random numbers" not in str(quiet)
    assert quiet.graph_signature.user_inputs == program.graph_signature.user_inputs == ("input",)
