"""copy, deepcopy and pickle of tensors, parameters, modules, dtypes, devices and generators."""

import copy
import pickle

import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad import nn

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


def matrix(torch, **options):
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]], **options)


def shown(tensor):
    return tensor, tensor.stride(), tensor.is_leaf, tensor._is_view()


@as_torch
def test_copies_keep_values_dtype_strides_and_requires_grad(torch):
    answers = []
    for way in WAYS.values():
        whole = torch.arange(6.0)
        tensors = [
            matrix(torch, requires_grad=True),
            matrix(torch),
            matrix(torch).t(),
            whole[1:4],
            whole[::2],
            whole.expand(2, 6),
            torch.tensor(True),
            torch.zeros(0, 3),
            torch.tensor([2**40]),
            torch.tensor([1 + 2j]).conj(),
            torch.tensor([0.5]).bfloat16(),
            whole[2:].requires_grad_(),
        ]
        answers.append([shown(way(tensor)) for tensor in tensors])
    return answers


@as_torch
def test_deepcopies_share_memory_as_their_originals_do(torch):
    whole = torch.zeros(4)
    part, other = whole[1:3], whole.detach()
    a, b, c, d = copy.deepcopy([whole, part, whole, other])
    a[1] = 7.0
    b.add_(1)
    d[3] = 5.0
    part_alone = copy.deepcopy(part)
    return (
        [whole, a, b, c, d],
        a is c,
        b.storage_offset(),
        b._base is None,
        b.untyped_storage().nbytes(),
        part_alone.untyped_storage().nbytes(),
    )


@as_torch("""
    tensor([0.0, 4.0, 4.0, 0.0])
    tensor([4.0, 4.0])
    tensor([0.0, 9.0, 3.0, 0.0])
    tensor([9.0, 3.0])
    tensor([4.0, 4.0])
""")
def test_the_copy_of_a_view_sees_writes_that_were_pending(torch):
    whole = torch.zeros(4)
    part = whole[1:3]
    part.fill_(3.0)
    a, b = copy.deepcopy((whole, part))
    part.fill_(4.0)
    b[0] = 9.0
    return whole, part, a, b, pickle.loads(pickle.dumps(part))


@as_torch("""
    tensor([[2.0, 4.0], [6.0, 8.0]])
    True
    None
    None
    [None, None, None]
""")
def test_gradients_of_copies(torch):
    x = matrix(torch, requires_grad=True)
    (x * x).sum().backward()
    pair, gradient = copy.deepcopy((x, x.grad))
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    return [
        pair.grad,
        pair.grad is gradient,
        copy.copy(x).grad,
        pickle.loads(pickle.dumps(x)).grad,
        [way(p).grad for way in WAYS.values()],
    ]


@as_torch
def test_parameters_and_modules(torch):
    nn, answers = torch.nn, []
    for way in WAYS.values():
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
        with torch.no_grad():
            for number, parameter in enumerate(model.parameters()):
                parameter.fill_(number + 1)
        model[2].weight = model[0].weight
        model[0].bias.requires_grad_(False)
        twin = way(model.eval())
        kinds = [isinstance(way(k(torch.ones(1))), k) for k in (nn.Parameter, nn.Buffer)]
        state = {name: value.clone() for name, value in twin.state_dict().items()}
        answers.append((state, twin[2].weight is twin[0].weight, kinds, twin.training))
        answers.append([parameter.requires_grad for parameter in twin.parameters()])
        answers.append(
            (way is copy.copy, twin[0].weight is model[0].weight, twin(torch.ones(3, 2)))
        )
    return answers


def test_an_optimizer_goes_on_where_its_copy_stands():
    model = nn.Linear(2, 1)
    optimizer = jaxgrad.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(jaxgrad.ones(1, 2)).sum().backward()
        optimizer.step()
        return [parameter.tolist() for parameter in model.parameters()]

    step(model, optimizer)
    told = pickle.dumps((model, optimizer))
    expected = step(model, optimizer)
    assert step(*copy.deepcopy(pickle.loads(told))) == step(*pickle.loads(told)) == expected


@as_torch("""
    [True, True, True]
    [3, 3, 3]
    ['cpu', 'cpu', 'cpu']
""")
def test_generators_are_copied_with_their_state(torch):
    generator = torch.Generator().manual_seed(3)
    torch.rand(3, generator=generator)
    copies = [way(generator) for way in WAYS.values()]
    expected = torch.rand(2, generator=generator)
    same = [(torch.rand(2, generator=twin) == expected).all().item() for twin in copies]
    return same, [twin.initial_seed() for twin in copies], [str(twin.device) for twin in copies]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_is_compared_by_identity_stays_the_same_object(protocol):
    for value in (
        jaxgrad.float32,
        jaxgrad.bool,
        jaxgrad.bfloat16,
        jaxgrad.channels_last,
        jaxgrad.strided,
    ):
        assert pickle.loads(pickle.dumps(value, protocol)) is value
        assert copy.copy(value) is copy.deepcopy(value) is value
    for value in (jaxgrad.device("cpu"), jaxgrad.device("cuda", 1)):
        assert pickle.loads(pickle.dumps(value, protocol)) == copy.deepcopy(value) == value


def test_a_traced_tensor_is_not_pickled():
    with pytest.raises(RuntimeError, match="pickling needs the numbers of a tensor"):
        jaxgrad.jit(lambda x: pickle.dumps(x * 2))(jaxgrad.ones(2))
    with pytest.raises(RuntimeError, match=r"inside of jaxgrad\.jit"):
        jaxgrad.jit(lambda x: copy.deepcopy(jaxgrad.random.default_generator))(jaxgrad.ones(2))


def test_deepcopy_in_a_compiled_function():
    whole = jaxgrad.zeros(4)
    part = whole[1:3]

    @jaxgrad.jit
    def step(x):
        twin = copy.deepcopy(part)
        twin.add_(x)
        return twin

    assert step(jaxgrad.ones(2)).tolist() == [1.0, 1.0]
    whole.fill_(2.0)
    assert step(jaxgrad.ones(2)).tolist() == [3.0, 3.0]
    assert part.tolist() == [2.0, 2.0]
