"""The device meta: tensors with shapes and dtypes, and no data."""

import contextlib
import copy
import pickle
import warnings

import jax
import jax.numpy as jnp
import pytest
from helpers.as_torch import as_torch, error, warned

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.core import executor
from jaxgrad.core.jax_internals import COMPILE_EVENT

# what PyTorch says where devices meet
NOT_THERE = "is not on the expected device"
NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"


def on_meta(torch, *shape, **options):
    return torch.empty(*shape, device="meta", **options)


# ---- making them


@as_torch
def test_meta_tensors_are_shown_without_data(torch):
    x = on_meta(torch, 2, 3)
    leaf = on_meta(torch, 2, requires_grad=True)
    parameter = torch.nn.Parameter(on_meta(torch, 2))
    others = [on_meta(torch, 0), on_meta(torch, ()), on_meta(torch, 2, dtype=torch.int64)]
    others += [on_meta(torch, 2, dtype=kind) for kind in (torch.bool, torch.complex64)]
    texts = [repr(tensor) for tensor in (x, x.t(), leaf, leaf * 2, parameter, *others)]
    return texts, f"{x}", str([x]), error(format, others[1], ".3f", words="unsupported format")


@as_torch("""
    [True, 'meta', False, False, -1, 'torch.meta.FloatTensor', 24, 0, 12, 24, 6, 2, 'meta', False,
     'meta:1']
    True
    True
    False
""")
def test_meta_tensors_know_where_they_are(torch):
    x = on_meta(torch, 2, 3)
    told = [x.is_meta, str(x.device), x.is_cpu, x.is_cuda, x.get_device(), x.type(), x.nbytes]
    told += [x.data_ptr(), x[1].data_ptr(), x.untyped_storage().nbytes(), x.numel(), len(x)]
    told += [str(x.untyped_storage().device), torch.ones(1).is_meta, str(torch.device("meta", 1))]
    return told, x.device == torch.device("meta"), x.is_contiguous(), x.t().is_contiguous()


@as_torch
def test_factories_on_meta(torch):
    x, put = torch.ones(2, 3).t(), {"device": "meta"}
    tensors = [torch.zeros(2, 3, **put), torch.ones((2,), dtype=torch.int32, **put)]
    tensors += [torch.full((2,), 3, **put), torch.full((2,), 3.0, **put), torch.eye(2, 3, **put)]
    tensors += [torch.arange(1, 6, 2, **put), torch.arange(0.0, 1.0, 0.3, **put)]
    tensors += [torch.linspace(0, 1, 5, **put), torch.logspace(0, 1, 5, **put)]
    tensors += [torch.tensor([[1, 2]], **put), torch.tensor(1.5, requires_grad=True, **put)]
    tensors += [torch.as_tensor([1.0], **put), torch.asarray([True], **put)]
    tensors += [torch.zeros_like(x, **put), torch.empty_like(x, **put), torch.rand_like(x, **put)]
    tensors += [torch.full_like(x, 2, **put), torch.hann_window(5, **put)]
    tensors += [torch.tril_indices(3, 3, **put), torch.empty_strided((2, 3), (1, 2), **put)]
    y = on_meta(torch, 2, 3, dtype=torch.float64)
    tensors += [y.new_zeros(2), y.new_tensor([1]), y.new_full((1,), 2), y.new_empty(3)]
    tensors += [torch.ones_like(y), torch.empty_like(y.t()), torch.zeros_like(y, dtype=torch.int8)]
    return tensors, torch.zeros_like(y, device="cpu"), torch.empty(10**12, **put).shape[0]


@as_torch
def test_no_random_numbers_are_drawn_on_meta(torch):
    functional = torch.nn.functional
    torch.manual_seed(0)
    x, p = on_meta(torch, 3, 4), {"device": "meta"}
    noise = [torch.rand(2, **p), torch.randn(2, **p), torch.randint(5, (2,), **p)]
    noise += [torch.randperm(4, **p), torch.bernoulli(x), torch.multinomial(x, 2), torch.poisson(x)]
    noise += [torch.normal(x, x), functional.dropout(x), x.clone().normal_(), x.clone().random_()]
    noise += [x.clone().uniform_(), x.clone().exponential_(), x.clone().bernoulli_(0.5)]
    layer = torch.nn.Linear(2, 3, device="meta")
    drawn = torch.randint(1000, (1,), generator=None).tolist()
    torch.manual_seed(0)
    return noise, list(layer.parameters()), drawn == torch.randint(1000, (1,)).tolist()


@as_torch("""
    [True, True, True, True, True, True, True, 'meta', 'meta', 'meta', 'meta', True, True]
    ValueError('Only tensors with 2 or more dimensions are supported')
    ValueError('Only tensors with 3, 4, or 5 dimensions are supported')
""")
def test_initialization_on_meta_leaves_the_tensor(torch):
    init, results = torch.nn.init, []
    for name in ("normal_", "uniform_", "trunc_normal_", "ones_", "zeros_", "eye_", "orthogonal_"):
        x = on_meta(torch, 4, 3)
        results.append(getattr(init, name)(x) is x)
    for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"):
        results.append(str(getattr(init, name)(on_meta(torch, 4, 3)).device))
    kernel, matrix = on_meta(torch, 2, 2, 3), on_meta(torch, 4, 3)
    results += [init.dirac_(kernel) is kernel, init.sparse_(matrix, 0.5) is matrix]
    wrong = error(init.orthogonal_, on_meta(torch, 3), words="2 or more dimensions")
    return results, wrong, error(init.dirac_, matrix, words="Only tensors with 3, 4, or 5")


@as_torch
def test_meta_as_the_default_device(torch):
    def places():
        new = [torch.ones(1), torch.tensor([1.0]), torch.rand(1), torch.arange(2)]
        data = torch.ones(2, device="cpu")
        kept = [data, torch.zeros_like(data), data.new_ones(1), data * 2, torch.Generator()]
        # tensors that the class makes lie on the CPU
        kept += [torch.Tensor(2), torch.Tensor([1.0, 2.0]), torch.Tensor(), torch.Tensor(kept[0])]
        layer = torch.nn.BatchNorm1d(2)
        layer = [*layer.parameters(), *layer.buffers()]
        return (
            [str(entry.device) for entry in (*new, *kept, *layer)],
            str(torch.get_default_device()),
        )

    results = []
    with torch.device("meta"):
        results.append(places())
        with torch.device("cpu"):
            results.append(places())
        results.append(repr(torch.ones(1, device="cpu")))
    torch.set_default_device("meta")
    try:
        results.append(places())
        with torch.device("cpu"):
            results.append(places())
    finally:
        torch.set_default_device(None)
    return results, places()


# ---- what they cannot do


@as_torch
def test_operators_that_need_values_raise_on_meta(torch):
    x, one, flags = on_meta(torch, 2), on_meta(torch, 1), on_meta(torch, 2, dtype=torch.bool)
    index = on_meta(torch, (), dtype=torch.int64)
    needs_item = [one.item, lambda: bool(one), lambda: float(one), lambda: int(one)]
    needs_item += [lambda: [1, 2][index], lambda: x[index], lambda: 1.0 in x]
    needs_item += [lambda: torch.full((2,), index), lambda: torch.tensor([one, one])]
    needs_item += [lambda: torch.allclose(x, x), lambda: torch.is_nonzero(one)]
    moves = [x.tolist, x.cpu, lambda: x.to("cpu"), lambda: x.numpy(force=True)]
    moves += [lambda: x.to(torch.ones(1)), lambda: torch.ones(2).copy_(x)]
    counts = [x.nonzero, lambda: x[flags], lambda: torch.ones(2)[flags], lambda: torch.unique(x)]
    counts += [lambda: torch.masked_select(x, flags), lambda: torch.bincount(x.long())]
    counts += [lambda: torch.unique_consecutive(x), lambda: torch.argwhere(x)]
    return (
        [error(call, words=NO_ITEM) for call in needs_item],
        [error(call, words=NO_DATA) for call in moves],
        [error(call)["error"] for call in counts],
        error(x.numpy, words="can't convert meta device type tensor to numpy"),
        error(x.__dlpack__, words="Cannot pack tensors on meta"),
        error(lambda: bool(x), words="more than one value is ambiguous"),
    )


@as_torch
def test_tensors_on_meta_and_others_do_not_mix(torch):
    functional = torch.nn.functional
    x, y = on_meta(torch, 2, 3), torch.ones(2, 3)
    number, empty = torch.tensor(2.0), on_meta(torch, ())
    fail = [lambda: x + y, lambda: empty + y, lambda: torch.cat([x, y]), lambda: x * y[:, :1]]
    fail += [lambda: torch.stack([x, y]), lambda: torch.maximum(x, y), lambda: y**empty]
    fail += [lambda: functional.cross_entropy(x, torch.tensor([0, 1]))]
    work = [x + number, number * x, empty + number, torch.where(x > 0, x, number), x * 2, 1 - x]
    into = [error(lambda: torch.add(x, x, out=y))["error"], error(lambda: y.set_(x))["error"]]
    return [error(call, words=NOT_THERE) for call in fail], work, into, y.sum().item()


@as_torch
def test_copies_to_and_from_meta(torch):
    x, y = on_meta(torch, 2, 3), torch.arange(6.0).reshape(2, 3)
    target = on_meta(torch, 2, 3)
    target[0] = y[0]
    target[:, 1] = 3.0
    target[target > 0] = 1
    chosen = [x[torch.tensor([1, 0])], x[[0, 1], 1:], x[y > 2], x[torch.tensor(1)], x[..., None]]
    moved = [y.to("meta"), y.t().to("meta"), y.to("meta", torch.float64), y.to(x), y.type_as(x)]
    same = [x.to("meta") is x, x.to("meta", copy=True) is x, x.to(x) is x]
    wrong = error(lambda: x.copy_(torch.ones(5, 3)), words="must match the size")
    assigned = [
        error(lambda: y.__setitem__(0, x[0]), words=NO_DATA),
        error(setattr, x, "data", y, words="incompatible tensor type"),
        error(setattr, y, "data", x, words="incompatible tensor type"),
    ]
    return x.copy_(y), target, chosen, moved, same, wrong, assigned, y


# ---- gradients


@as_torch
def test_a_backward_pass_on_meta_gives_meta_gradients(torch):
    w, x = on_meta(torch, 3, 4, requires_grad=True), on_meta(torch, 2, 3)
    seen = []
    w.register_hook(lambda gradient: seen.append(gradient))
    y = (x @ w).relu()
    y.retain_grad()
    loss = y.pow(2).mean()
    loss.backward(retain_graph=True)
    loss.backward()
    (first,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), w)
    names = [loss.grad_fn.name(), y.grad_fn.name()]
    return w.grad, y.grad, seen, first, second, names, loss.is_leaf


@as_torch
def test_gradients_stay_on_their_device(torch):
    x, leaf = on_meta(torch, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    scale = torch.ones((), requires_grad=True)
    apart = [
        error((x * 2).backward, torch.ones(3), words="expected device meta but got cpu"),
        error(setattr, x, "grad", torch.ones(3), words="gradient with device type 'cpu'"),
        error(setattr, leaf, "grad", on_meta(torch, 3), words="gradient with device type 'meta'"),
    ]
    lost = [(x * scale).sum(), leaf.to("meta").sum(), on_meta(torch, 3).copy_(leaf).sum()]
    lost = [error(loss.backward, words=NO_DATA) for loss in lost]
    return apart, lost, leaf.grad, scale.grad, error((x * 2).backward)["error"]


@as_torch("""
    tensor(shape=[2], strides=[1], dtype=float32, device='meta', requires_grad=True)
    tensor(shape=[2], strides=[1], dtype=float32, device='meta')
    RuntimeError(
     'Function ElsewhereBackward returned an invalid gradient at index 0 - expected '
     'device meta but got cpu')
""")
def test_a_function_on_meta(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(2)

    x = on_meta(torch, 2, requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    wrong = error(Elsewhere.apply(x).sum().backward, words="returned an invalid gradient at index")
    return first, second, wrong


@as_torch("""
    [2, 2, True, 6, False, 24, [6], True]
    [[3, 1], [1, 3], [1, 3], [6, 0, 1], [6, 2, 1], [5, 1], [1, 3]]
    tensor(shape=[4], strides=[1], dtype=float32, device='meta')
    tensor(shape=[2], strides=[1], dtype=complex64, device='meta')
    RuntimeError('a leaf Variable that requires grad is being used in an in-place operation.')
""")
def test_views_and_writes_on_meta(torch):
    base = on_meta(torch, 4, 6)
    view = base[1:, ::2].t()
    inner = view[0]
    inner.mul_(2)
    view.add_(1)
    told = [base._version, view._version, inner._base is base, view.storage_offset()]
    told += [view.is_contiguous(), view.data_ptr(), inner.stride(), base.view(-1)._is_view()]
    leaf = on_meta(torch, 4, requires_grad=True)
    product = leaf * 2
    product[1:].mul_(3)
    product[product > 8] = 0
    product.sum().backward()
    z = on_meta(torch, 2, dtype=torch.complex64)
    z.real.zero_()
    strides = [view.contiguous().stride(), (view + 1).stride(), torch.empty_like(view).stride()]
    strides += [base[:, None].expand(4, 3, 6).stride(), base.unfold(1, 2, 2).stride()]
    strides += [base.resize_(2, 5).stride(), on_meta(torch, 2, 3).t_().stride()]
    refused = error(leaf.add_, 1, words="leaf Variable that requires")
    return told, strides, leaf.grad, z, refused


@as_torch
def test_layouts_on_meta(torch):
    image = on_meta(torch, 2, 3, 4, 5).to(memory_format=torch.preserve_format)
    last = torch.empty(2, 3, 4, 5, device="meta", memory_format=torch.channels_last)
    results = [last, last * 2, last.relu(), last + image, image + last, last.clone(), last.sum(1)]
    results += [
        torch.zeros_like(last),
        last.contiguous(),
        last.permute(0, 2, 3, 1),
        last[0],
        last / 2,
    ]
    return results, last.is_contiguous(memory_format=torch.channels_last)


# ---- transforms


@as_torch
def test_transforms_on_meta(torch):
    func, x = torch.func, on_meta(torch, 4, 3)

    def loss(x):
        return (x.sin() * x).sum()

    vmapped = [func.vmap(torch.dot)(x, x), func.vmap(torch.sin, in_dims=1)(x).contiguous()]
    vmapped += [
        len(func.vmap(torch.sin)(x[:0])),
        func.vmap(func.grad(loss))(x),
        func.vmap(torch.mul, in_dims=(0, None))(x, x[0]),
    ]
    derived = [func.grad(loss)(x), func.grad_and_value(loss)(x), func.vjp(torch.sin, x)[1](x)]
    derived += [
        func.jacrev(torch.sin)(x[0]),
        func.jacfwd(torch.sin)(x[0]),
        func.hessian(loss)(x[0]),
    ]
    functional, forward = torch.autograd.functional, {"strategy": "forward-mode"}
    wide = [func.jacrev(lambda x: x[:2])(x[0]), func.jacfwd(lambda x: x[:2])(x[0])]
    wide += [functional.jacobian(lambda x: x[:2].sin(), x[0], vectorize=True, **forward)]
    derived += [jacobian.contiguous() for jacobian in wide]
    derived += [functional.jacobian(torch.sin, x[0]), functional.hessian(loss, x[0])]
    derived += [functional.jacobian(torch.sin, x[0], vectorize=True)]
    shared = on_meta(torch, 3, requires_grad=True)
    func.vmap(lambda x: x @ shared)(x).sum().backward()
    return vmapped, derived, shared.grad


@as_torch("""
    [tensor(shape=[2], strides=[1], dtype=float32, device='meta'),
     tensor(shape=[2], strides=[1], dtype=float32, device='meta')]
    [tensor(shape=[2, 3], strides=[3, 1], dtype=float32, device='meta'),
     tensor(shape=[2, 3], strides=[3, 1], dtype=float32, device='meta')]
""")
def test_forward_mode_on_meta(torch):
    forward_ad, x = torch.autograd.forward_ad, on_meta(torch, 2, 3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, on_meta(torch, 2, 3))
        parts = list(forward_ad.unpack_dual((dual * 2).sum(1)))
    return parts, list(torch.func.jvp(torch.sin, (x,), (x,)))


# ---- modules


def modules(torch):
    """Modules and the shapes of their inputs."""
    nn, on = torch.nn, {"device": "meta"}
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **on)
    return [
        (nn.Linear(3, 4, **on), [(5, 3)]),
        (nn.Bilinear(2, 3, 4, **on), [(5, 2), (5, 3)]),
        (nn.Conv2d(2, 4, 3, padding=1, **on), [(5, 2, 6, 7)]),
        (nn.ConvTranspose1d(2, 4, 3, stride=2, **on), [(5, 2, 6)]),
        (nn.BatchNorm2d(3, **on), [(2, 3, 4, 4)]),
        (nn.LayerNorm(3, **on), [(2, 3)]),
        (nn.GroupNorm(2, 4, **on), [(2, 4, 5)]),
        (nn.PReLU(**on), [(2, 3)]),
        (nn.Sequential(nn.Linear(3, 2, **on), nn.Dropout(), nn.Softmax(-1)), [(5, 3)]),
        (nn.MaxPool2d(2), [(2, 3, 5, 6)]),
        (nn.AdaptiveAvgPool1d(3), [(2, 3, 7)]),
        (nn.Upsample(scale_factor=2), [(2, 3, 4)]),
        (nn.Flatten(), [(2, 3, 4)]),
        (encoder, [(2, 5, 8)]),
        (nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False), [(2, 5, 8)]),
        (nn.MSELoss(), [(2, 3), (2, 3)]),
    ]


@pytest.mark.slow
@as_torch
def test_modules_on_meta(torch):
    results = []
    for module, shapes in modules(torch):
        inputs = [on_meta(torch, *shape, requires_grad=True) for shape in shapes]
        output = module(*inputs)
        output.sum().backward()
        gradients = [tensor.grad for tensor in (*inputs, *module.parameters())]
        results.append([output, gradients, dict(module.state_dict())])
    return results


@as_torch
def test_modules_with_states_and_indices_on_meta(torch):
    nn, x = torch.nn, on_meta(torch, 5, 2, 3)
    output, (hidden, cell) = nn.LSTM(3, 4, 2, bidirectional=True, device="meta")(x)
    attention = nn.MultiheadAttention(4, 2, device="meta")
    attended, weights = attention(*[on_meta(torch, 5, 2, 4)] * 3)
    table = nn.Embedding(7, 3, device="meta")
    looked_up = table(on_meta(torch, 2, 4, dtype=torch.int64))
    looked_up.sum().backward()
    lazy = nn.LazyLinear(2, device="meta")
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    packed, _ = nn.GRU(3, 4, device="meta")(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed)
    results = [output, hidden, cell, attended, weights, looked_up, table.weight.grad]
    return results, lazy(x), lazy.weight, padded, lengths


@as_torch
def test_modules_move_to_meta_and_get_memory(torch):
    nn = torch.nn
    layer = nn.Linear(2, 3)
    layer(torch.ones(1, 2)).sum().backward()
    layer.to("meta")
    moved = [layer.weight.detach(), layer.weight.grad.detach(), layer.weight.is_leaf]
    refused = error(layer.to, "cpu", words=NO_DATA)
    layer.to_empty(device="cpu")
    filled = [layer.weight.shape[0], str(layer.weight.device), str(layer.bias.grad.device)]
    model = nn.Sequential(nn.Linear(2, 2, device="meta"), nn.BatchNorm1d(2, device="meta"))
    model.to_empty(device=None)
    filled += [
        {str(tensor.device) for tensor in (*model.parameters(), *model.buffers())} == {"meta"}
    ]
    model.to_empty(device="cpu", recurse=False)
    filled += [str(tensor.device) for tensor in (*model.parameters(), *model.buffers())]
    model.to_empty(device="cpu")
    filled += [str(tensor.device) for tensor in (*model.parameters(), *model.buffers())]
    return moved, refused, filled, error(model.to_empty, words="device")["error"]


@as_torch
def test_state_dicts_on_meta(torch):
    def layers():
        return torch.nn.Linear(2, 1, bias=False, device="meta"), torch.nn.Linear(2, 1, bias=False)

    empty, full = layers()
    with torch.no_grad():
        full.weight.copy_(torch.tensor([[1.0, 2.0]]))
    copied = warned(lambda: str(empty.load_state_dict(full.state_dict())))
    copied["warnings"][0]["words"] = "for weight: copying from a non-meta parameter in the"
    still = str(empty.weight.device)
    assigned = warned(lambda: str(empty.load_state_dict(full.state_dict(), assign=True)))
    present = [empty.weight, isinstance(empty.weight, torch.nn.Parameter), empty(torch.ones(2))]
    other, _ = layers()
    wrong = error(full.load_state_dict, other.state_dict(), words="While copying the parameter")
    among = warned(lambda: str(layers()[0].load_state_dict(other.state_dict())))
    return copied, still, assigned, present, wrong, among, full.weight


@as_torch("""
    tensor([5.0, 113.0, 421.0])
    {'weight': tensor([[[-10.0, 8.0]], [[-62.0, -12.0]], [[-114.0, -32.0]]]),
     'bias': tensor([[-2.0], [-30.0], [-58.0]])}
""")
def test_a_base_on_meta_computes_with_the_parameters_of_others(torch):
    func, models = torch.func, [torch.nn.Linear(2, 1) for _ in range(3)]
    with torch.no_grad():
        for number, parameter in enumerate(p for model in models for p in model.parameters()):
            parameter.copy_(torch.arange(float(parameter.numel())).view(parameter.shape) - number)
    stacked, _ = func.stack_module_state(models)
    stacked = {name: tensor.detach() for name, tensor in stacked.items()}
    base, x = copy.deepcopy(models[0]).to("meta"), torch.tensor([[1.0, 2.0], [3.0, -1.0]])

    def loss(parameters, x):
        return func.functional_call(base, parameters, (x,)).pow(2).sum()

    return func.vmap(loss, (0, None))(stacked, x), func.vmap(func.grad(loss), (0, None))(stacked, x)


@as_torch
def test_optimizers_on_meta(torch):
    states, kinds = {}, {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"amsgrad": True}}
    kinds |= {name: {} for name in ("AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "RAdam")}
    for name, options in kinds.items():
        layer = torch.nn.Linear(3, 2, device="meta")
        optimizer = getattr(torch.optim, name)(layer.parameters(), **options)
        for _ in range(2):
            optimizer.zero_grad()
            layer(on_meta(torch, 4, 3)).sum().backward()
            norm = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimizer.step()
        state = optimizer.state_dict()["state"]
        states[name] = [{key: values[key] for key in sorted(values)} for values in state.values()]
    layer.zero_grad()
    return states, norm, layer.weight.grad


@as_torch
def test_copies_of_meta_tensors(torch):
    x = on_meta(torch, 2, 3, requires_grad=True)
    copies = [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x.detach().t()))]
    layer = torch.nn.Linear(2, 1, device="meta")
    layer(on_meta(torch, 2)).sum().backward()
    twin = copy.deepcopy(layer)
    loaded = pickle.loads(pickle.dumps(layer))
    kept = [isinstance(module.weight, torch.nn.Parameter) for module in (twin, loaded)]
    return copies, list(twin.parameters()), list(loaded.parameters()), kept, twin.weight.grad


@as_torch("""
    tensor(shape=[3], strides=[1], dtype=float32, device='meta')
    tensor(shape=[3], strides=[1], dtype=float32, device='meta')
""")
def test_checkpoints_and_saved_tensors_on_meta(torch):
    x = on_meta(torch, 3, requires_grad=True)
    checkpoint = torch.utils.checkpoint.checkpoint
    checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum().backward()
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        loss = (x.detach().requires_grad_() ** 2).sum()
    loss.backward()
    return x.grad, seen[0].detach()


# ---- where jaxgrad is stricter than PyTorch, which computes with memory that is not initialized


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, y: x @ y.t(),
        lambda x, y: y @ x.t(),
        lambda x, y: nn.functional.linear(x, y),
        lambda x, y: nn.functional.embedding(torch.tensor([1]), x),
        lambda x, y: nn.functional.embedding(torch.tensor([1]).to("meta"), y),
        lambda x, y: y[torch.tensor([1]).to("meta")],
        lambda x, y: y.add_(x),
        lambda x, y: x.add_(y),
        lambda x, y: y[0, 0].mul_(x[0, 0]),
        lambda x, y: torch.add(y, 1, out=x),
        lambda x, y: y.fill_(x[0, 0]),
        lambda x, y: torch.func.vmap(lambda row: row * x[0])(y),
        lambda x, y: torch.func.vmap(torch.mul)(x, y),
        lambda x, y: torch.func.jvp(torch.sin, (x,), (y,)),
        lambda x, y: torch.func.jvp(torch.sin, (y,), (x,)),
    ],
)
def test_what_pytorch_lets_pass_raises(mix):
    x, y = on_meta(torch, 2, 3), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        mix(x, y)
    assert y.tolist() == [[1.0] * 3] * 2


def test_a_gradient_of_a_hook_must_be_on_its_device():
    for tensor, other in ((on_meta(torch, 2), torch.ones(2)), (torch.ones(2), on_meta(torch, 2))):
        tensor.requires_grad_().register_hook(lambda gradient, other=other: other)
        with pytest.raises(RuntimeError, match="on another device, and one of both is meta"):
            tensor.sum().backward()
        assert tensor.grad is None


def test_moving_a_module_keeps_its_parameters_and_their_ties():
    model = nn.ModuleDict({"one": nn.Linear(2, 2), "other": nn.Linear(2, 2)})
    model["other"].weight = model["one"].weight
    before = list(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to("meta")
    shared = on_meta(torch, 2)
    for layer in model.values():
        layer.register_buffer("shared", shared)
    model.to_empty(device="cpu")
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    assert model["other"].weight is model["one"].weight
    assert model["other"].shared is model["one"].shared and not model["one"].shared.is_meta
    nn.init.ones_(model["one"].weight)
    model["other"](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    torch.testing.assert_close(model["one"].weight.detach(), torch.full((2, 2), 0.9))


def test_an_optimizer_on_meta_takes_a_state_dict():
    layer, other = nn.Linear(2, 1), nn.Linear(2, 1, device="meta")
    optimizer, empty = torch.optim.Adam(layer.parameters()), torch.optim.Adam(other.parameters())
    layer(torch.ones(2)).sum().backward()
    optimizer.step()
    empty.load_state_dict(optimizer.state_dict())
    state = empty.state[other.weight]
    assert state["step"].item() == 1 and state["exp_avg"].is_meta
    other(on_meta(torch, 2)).sum().backward()
    empty.step()
    assert empty.state[other.weight]["step"].item() == 2
    with pytest.raises(NotImplementedError, match=NO_DATA):
        optimizer.load_state_dict(empty.state_dict())


# ---- nothing runs, and nothing is compiled


@contextlib.contextmanager
def no_work():
    """Fails if a kernel runs inside of the block, or JAX compiles one."""
    done, is_open = [], [True]

    def compiled(event, *_, **__):
        if is_open and event == COMPILE_EVENT:
            done.append(event)

    def ran(program, kernel, *arrays):
        done.append(program.name)
        return kernel(*arrays)

    jax.monitoring.register_event_duration_secs_listener(compiled)
    executor.observe(ran)
    try:
        yield
    finally:
        executor.unobserve(ran)
        is_open.clear()
    assert not done


def test_a_training_step_of_seven_billion_parameters_computes_nothing():
    width, layers, on = 4096, 4, {"device": "meta"}
    with no_work():
        blocks = [nn.TransformerEncoderLayer(width, 32, 4 * width, **on) for _ in range(layers)]
        model = nn.Sequential(*blocks, nn.Linear(width, 1_600_000, **on))
        x = on_meta(torch, 128, 8, width)
        loss = nn.functional.cross_entropy(
            model(x).flatten(0, 1), on_meta(torch, 1024, dtype=torch.int64)
        )
        loss.backward()
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()
    assert sum(parameter.numel() for parameter in model.parameters()) > 7e9
    assert all(parameter.grad.is_meta for parameter in model.parameters())


def test_the_guard_of_these_tests_sees_work():
    with pytest.raises(AssertionError), no_work():
        torch.ones(3).sin()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(10**12, device="meta") * 2,
        lambda: torch.arange(10**12, device="meta"),
        lambda: torch.randn(10**6, 10**6, device="meta").sum(0),
        lambda: nn.init.dirac_(torch.empty(10**5, 10**5, 9, device="meta")),
        lambda: nn.init.eye_(torch.empty(10**6, 10**6, device="meta")),
        lambda: torch.ones(3, device="meta").expand(10**12, 3).contiguous(),
    ],
)
def test_size_does_not_matter(make):
    with no_work():
        assert make().is_meta


def test_memory_is_that_of_a_number_of_bytes():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty(2**61, device="meta")
    x = on_meta(torch, 1000, 1000, requires_grad=True)
    report = torch.autograd.graph.memory_report((x.sin() * 2).sum())
    assert "4,000,000 bytes" in repr(report)


# ---- compiled functions, and JAX


def test_a_compiled_function_runs_uncompiled_on_meta():
    layer, calls = nn.Linear(3, 2, device="meta"), []
    optimizer = torch.optim.Adam(layer.parameters())

    @torch.jit
    def step(x):
        calls.append(x.device.type)
        optimizer.zero_grad()
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = on_meta(torch, 4, 3)
    assert step(x).is_meta and step(x).is_meta
    assert calls == ["meta"] * 2 and step.count == 0 and layer.weight.grad.is_meta
    assert optimizer.state[layer.weight]["step"].item() == 2

    @torch.jit
    def captured():
        return layer.weight.sum()

    assert captured().is_meta and captured().shape == ()

    @torch.jit
    def mixed(x):
        return layer(x)

    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        mixed(torch.ones(4, 3))
    layer.load_state_dict(nn.Linear(3, 2).state_dict(), assign=True)
    assert torch.allclose(mixed(torch.ones(4, 3)), layer(torch.ones(4, 3)))


def test_a_compiled_function_makes_meta_tensors():
    @torch.jit
    def f(x):
        shape = (torch.empty(2, 3, device="meta") @ torch.empty(3, 4, device="meta")).shape
        return x.sum() * shape[1]

    assert f(torch.ones(2)).item() == 8 and f(torch.ones(2)).item() == 8 and f.count == 1

    @torch.jit
    def gives(x):
        return x * 2, torch.empty(3, device="meta")

    double, empty = gives(torch.ones(2))
    assert double.tolist() == [2, 2] and empty.is_meta


def test_a_compiled_function_follows_the_default_device():
    @torch.jit
    def ones():
        return torch.ones(2)

    assert not ones().is_meta
    with torch.device("meta"):
        assert ones().is_meta
        with torch.device("cpu"):
            assert not ones().is_meta
    assert not ones().is_meta


def test_meta_tensors_are_abstract_inputs_of_what_is_lowered():
    """As a step of a large model is compiled before there is memory for it."""
    with torch.device("meta"):
        layer = nn.Linear(3000, 2000, bias=False)
    optimizer = torch.optim.Adam(layer.parameters())

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        layer(x).pow(2).mean().backward()
        optimizer.step()

    memory = step.lower(on_meta(torch, 5, 3000)).compile().memory_analysis()
    weight = 3000 * 2000 * 4
    assert 3 * weight < memory.argument_size_in_bytes < 3.1 * weight
    assert layer.weight.is_meta and layer.weight.grad is None
    assert not optimizer.state


def test_jax_sees_a_shape_and_refuses_to_compute():
    x = on_meta(torch, 2, 3)
    for function in (jnp.sum, jnp.sin, jax.jit(lambda x: x * 2)):
        with pytest.raises(TypeError, match="no data, since the device is meta"):
            function(x)
    with pytest.raises(NotImplementedError, match=NO_DATA):
        jnp.asarray(x)
    shapes = jax.tree.map(lambda array: array.shape, {"x": x}, is_leaf=torch.is_tensor)
    assert shapes["x"] == (2, 3)
    lowered = jax.jit(lambda x: x * 2).lower(x)
    assert "tensor<2x3xf32>" in lowered.as_text()
    (leaf,) = jax.tree.leaves(x)
    assert jax.eval_shape(lambda x: x.sum(0), leaf).shape == (3,)
    assert jax.tree.map(lambda array: array, x).is_meta


def test_operators_of_jax_and_of_users_on_meta():
    double = torch.from_jax(lambda x: {"double": x * 2})
    x = on_meta(torch, 2, 3, requires_grad=True)
    double(x)["double"].sum().backward()
    assert x.grad.is_meta and x.grad.shape == (2, 3)

    @torch.library.custom_op("meta_tests::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() ** 3)

    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        cube(x.detach())
    cube.register_fake(lambda x: torch.empty_like(x))
    assert cube(x.detach()).is_meta


def test_control_flow_on_meta():
    x, flag = on_meta(torch, 3, requires_grad=True), on_meta(torch, (), dtype=torch.bool)
    result = torch.cond(flag, lambda x: x * 2, lambda x: x.exp(), (x,))
    result.sum().backward()
    carry, out = torch.scan(lambda c, a: (c + a, c), on_meta(torch, 3), on_meta(torch, 5, 3))
    assert result.is_meta and x.grad.is_meta and carry.shape == (3,) and out.shape == (5, 3)
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        torch.while_loop(lambda x: x.sum() < 3, lambda x: (x + 1,), (x.detach(),))


def test_what_looks_at_numbers_on_meta():
    x = on_meta(torch, 3, requires_grad=True)
    with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
        x.log().sum().backward()
    assert "none on the device meta" in str(torch.autograd.graph.explain(x))
    with torch.autograd.graph.save_on_cpu():
        loss = (x * x).sum()
    loss.backward()
    with torch.autograd.profiler.profile():
        (x * 2).sum().backward()
    with pytest.raises(NotImplementedError, match=NO_DATA):
        torch.autograd.gradcheck(torch.sin, (x.detach().double().requires_grad_(),))
    scaler = torch.amp.GradScaler("cpu")
    layer = nn.Linear(3, 1, device="meta")
    scaler.scale(layer(x.detach()).sum()).backward()
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        scaler.step(torch.optim.SGD(layer.parameters(), lr=0.1))
    with torch.autocast("cpu", torch.bfloat16):
        assert (on_meta(torch, 2, 3) @ on_meta(torch, 3, 2)).dtype is torch.float32
    torch.testing.assert_close(x.detach(), on_meta(torch, 3))
    with pytest.raises(AssertionError, match="shape"):
        torch.testing.assert_close(x.detach(), on_meta(torch, 4))


def test_sparse_tensors_are_refused_on_meta():
    with pytest.raises(NotImplementedError, match="meta"):
        torch.sparse_coo_tensor([[0]], [1.0], (2,), device="meta")
    with pytest.raises(NotImplementedError, match="meta"):
        torch.ones(2).to_sparse().to("meta")
    with pytest.raises(NotImplementedError, match=NO_DATA):
        on_meta(torch, 2).to_sparse()


def test_files_take_no_tensors_without_data(tmp_path):
    with pytest.raises(NotImplementedError, match=NO_DATA):
        torch.save({"x": on_meta(torch, 2)}, tmp_path / "x.safetensors")
    torch.save({"x": torch.ones(2)}, tmp_path / "x.safetensors")
    with torch.device("meta"):
        assert torch.load(tmp_path / "x.safetensors")["x"].tolist() == [1, 1]
    assert torch.load(tmp_path / "x.safetensors", map_location="meta")["x"].is_meta
