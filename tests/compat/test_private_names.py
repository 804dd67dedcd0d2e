"""Private and old names of PyTorch that packages call, and what they compute: NumPy and the public
functions are the oracles.
"""

import copy
import importlib
import warnings

import numpy as np
import pytest
import scipy.sparse as scipy_sparse
from helpers.as_torch import as_torch, error

import jaxgrad as torch


def test_rows_of_many_tensors():
    tensors = [torch.ones(1), torch.zeros(0, 3), torch.arange(4.0).reshape(2, 2)]
    flat = torch._utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1, 0, 1, 2, 3]
    parts = torch._utils._unflatten_dense_tensors(flat, tensors)
    assert [part.shape for part in parts] == [tensor.shape for tensor in tensors]
    parts[2].zero_()  # a view
    assert flat.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("turned", [False, True])
def test_a_tensor_on_a_storage_shares_its_memory(turned):
    whole = torch.arange(12.0).reshape(3, 4)
    x = whole.t() if turned else whole
    part = torch._utils._rebuild_tensor_v2(x.storage(), 1, (2, 2), (4, 2), True, {})
    memory = np.arange(12.0, dtype=np.float32)
    expected = np.lib.stride_tricks.as_strided(memory[1:], (2, 2), (16, 8))
    assert part.is_leaf and part.requires_grad and part._base is None
    np.testing.assert_array_equal(part.detach().numpy(), expected)
    with torch.no_grad():
        part[1, 1] = 100
    assert whole.reshape(-1)[7] == 100 and part.data_ptr() == whole.data_ptr() + 4


def test_tensors_set_to_storages():
    x = torch.arange(6, dtype=torch.int32)
    y = torch.zeros(0, dtype=torch.int32).set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]]
    y += 10
    assert x.tolist() == [0, 11, 12, 13, 14, 5]
    assert torch.zeros(0, dtype=torch.uint8).set_(x.untyped_storage()).shape == (24,)


def test_rebuilt_parameters_and_subclasses():
    class Named(torch.Tensor):
        pass

    weight = torch._utils._rebuild_parameter(torch.ones(2), False, {})
    assert isinstance(weight, torch.nn.Parameter) and not weight.requires_grad
    state = {"label": "a"}
    rebuilt = torch._tensor._rebuild_from_type_v2(torch.ones, Named, (2,), state)
    assert type(rebuilt) is Named and rebuilt.label == "a" and rebuilt.tolist() == [1, 1]
    assert isinstance(Named, torch._C._TensorMeta) and not isinstance(int, torch._C._TensorMeta)


def test_storages_of_buffers():
    storage = torch.ByteStorage.from_buffer(b"abc")
    assert storage.tolist() == [97, 98, 99] and torch.ByteTensor(storage).tolist() == [97, 98, 99]
    numbers = np.array([1, -2], ">i4")
    read = torch.IntStorage.from_buffer(numbers.tobytes(), byte_order="big")
    assert read.tolist() == [1, -2] and isinstance(read, torch.IntStorage)
    with pytest.raises(RuntimeError, match="missing required argument 'byte_order'"):
        torch.IntStorage.from_buffer(numbers.tobytes())
    half = torch.UntypedStorage.from_buffer(numbers.tobytes(), "big", 1, 4, torch.int32)
    assert np.array(half.tolist(), np.uint8).view(np.int32).tolist() == [-2]


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor:UserWarning")
def test_types_of_sparse_tensors():
    indices, values = torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0])
    x = torch.sparse.FloatTensor(indices, values, torch.Size([3]))
    assert x.is_sparse and x.to_dense().tolist() == [1, 2, 0]
    assert torch.sparse.FloatTensor(indices, values).shape == (2,)
    assert torch.sparse.DoubleTensor(2, 3).dtype is torch.float64
    assert torch.sparse.LongTensor(torch.Size([2, 3])).shape == (2, 3)
    assert isinstance(x, torch.sparse.FloatTensor) and not isinstance(x, torch.sparse.HalfTensor)
    assert not isinstance(values, torch.sparse.FloatTensor)
    with pytest.raises(TypeError, match="only accepts sizes"):
        torch.sparse.FloatTensor([1, 2])
    dense = torch.arange(6.0).reshape(3, 2)
    matrix = torch.sparse.FloatTensor(torch.tensor([[0, 1], [2, 0]]), values, (2, 3))
    expected = matrix.to_dense().numpy() @ dense.numpy()
    np.testing.assert_allclose(torch.dsmm(matrix, dense).numpy(), expected)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 2), (5, 5)])
def test_matrices_of_diagonals(shape):
    diagonals, offsets = np.arange(1.0, 13).reshape(3, 4), np.array([0, -1, 2])
    rows = torch.tensor(diagonals, requires_grad=True)
    matrix = torch.sparse.spdiags(rows, torch.tensor(offsets), shape).to_dense()
    expected = scipy_sparse.spdiags(diagonals, offsets, *shape).toarray()
    np.testing.assert_array_equal(matrix.detach().numpy(), expected)
    matrix.sum().backward()
    np.testing.assert_array_equal(rows.grad.numpy(), np.isin(diagonals, expected))
    with pytest.raises(RuntimeError, match="duplicate"):
        torch.sparse.spdiags(rows, torch.tensor([0, 1, 1]), shape)


def test_compressed_indices():
    matrix = np.random.default_rng(0).random((5, 4)) > 0.6
    coo = scipy_sparse.coo_matrix(matrix)
    csr = coo.tocsr()
    rows = torch.tensor(coo.row.astype(np.int64))
    crow = torch._convert_indices_from_coo_to_csr(rows, 5)
    np.testing.assert_array_equal(crow.numpy(), csr.indptr)
    columns = torch.tensor(csr.indices.astype(np.int64))
    indices = torch._convert_indices_from_csr_to_coo(crow, columns, out_int32=True)
    assert indices.dtype is torch.int32
    np.testing.assert_array_equal(indices.numpy(), np.stack([coo.row, csr.indices]))
    turned = torch._convert_indices_from_csr_to_coo(crow, columns, transpose=True)
    np.testing.assert_array_equal(turned.numpy(), np.stack([csr.indices, coo.row]))


def test_operators_with_an_underscore_are_functions_of_torch():
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = torch.softmax(x, 0)
    (expected,) = torch.autograd.grad(y, x, torch.tensor([1.0, 0.0, 0.0]))
    result = torch._softmax_backward_data(torch.tensor([1.0, 0.0, 0.0]), y, 0, torch.float32)
    assert torch.equal(result, expected) and not hasattr(torch, "_coo_tensor")
    assert torch._cast_Long(torch.tensor([1.7])).tolist() == [1]


def test_copies_in_place_of_views():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    calls = {
        "expand_copy": ((4, 2, 3),),
        "permute_copy": ((1, 0),),
        "select_copy": (1, 0),
        "t_copy": (),
        "unsqueeze_copy": (0,),
        "view_copy": ((6,),),
        "alias_copy": (),
        "narrow_copy": (1, 1, 2),
        "diagonal_copy": (),
        "unfold_copy": (1, 2, 1),
    }
    for name, arguments in calls.items():
        result = getattr(torch, name)(x, *arguments)
        view = name.removesuffix("_copy")
        expected = x if view == "alias" else getattr(x, view)(*arguments)
        assert torch.equal(result, expected) and result._base is None, name
        assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr(), name
    (gradient,) = torch.autograd.grad(torch.expand_copy(x, (4, 2, 3)).sum(), x)
    assert gradient.tolist() == [[4, 4, 4], [4, 4, 4]]
    assert [part.tolist() for part in torch.unbind_copy(x)] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8])
def test_running_combinations(count, reverse):
    from jaxgrad._higher_order_ops.associative_scan import associative_scan

    numbers = np.random.default_rng(count).normal(size=(2, count, 3))
    x = torch.tensor(numbers, requires_grad=True)
    result = associative_scan(lambda a, b: a + b, x, 1, reverse)
    turned = numbers[:, ::-1] if reverse else numbers
    expected = np.cumsum(turned, 1)[:, ::-1] if reverse else np.cumsum(turned, 1)
    np.testing.assert_allclose(result.detach().numpy(), expected, atol=1e-12)
    if count > 1:
        assert torch.autograd.gradcheck(
            lambda x: associative_scan(lambda a, b: a * b, x, 1, reverse), (x,)
        )


def test_a_linear_recurrence_is_a_running_combination():
    from jaxgrad._higher_order_ops.associative_scan import associative_scan

    decay, inputs = np.random.default_rng(0).uniform(size=(2, 9))
    expected, state = [], 0.0
    for factor, term in zip(decay, inputs, strict=True):
        state = factor * state + term
        expected.append(state)

    def combine(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]

    _, result = associative_scan(combine, (torch.tensor(decay), torch.tensor(inputs)), 0)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_a_module_with_other_parameters():
    layer = torch.nn.Linear(2, 1)
    other = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    with torch.nn.utils.stateless._reparametrize_module(layer, other):
        assert layer(torch.tensor([3.0, 4.0])).item() == 7
    assert layer.weight is not other["weight"]


def test_groups_of_processes():
    distributed = torch.distributed
    assert distributed.GroupMember.WORLD is None
    groups = distributed.distributed_c10d._pg_map
    assert len(groups) == 0
    distributed.init_process_group(world_size=1, rank=0)
    try:
        world = distributed.GroupMember.WORLD
        assert world is distributed.group.WORLD and [*groups] == [world]
        other = distributed.new_group([0])
        assert other in groups and groups[other][0] == "gloo"
        distributed.destroy_process_group(other)
        assert [*groups] == [world]
    finally:
        distributed.destroy_process_group()
    assert len(groups) == 0 and distributed.GroupMember.WORLD is None


def test_collectives_of_one_process_give_new_tensors():
    from jaxgrad.distributed import _functional_collectives as collectives

    torch.distributed.init_process_group(world_size=1, rank=0)
    group, x = torch.distributed.group.WORLD, torch.arange(4.0).reshape(2, 2).requires_grad_()
    try:
        for result in (
            collectives.all_reduce(x, "sum", group),
            collectives.all_gather_tensor(x, 1, group),
            collectives.reduce_scatter_tensor(x, "avg", 1, group),
            collectives.all_to_all_single(x, None, None, group),
            collectives.permute_tensor(x, [0], group),
            collectives.broadcast(x, 0, [0]),
        ):
            assert torch.equal(result, x) and not result.requires_grad
            assert result.data_ptr() != x.data_ptr()
        collectives.all_gather_tensor_autograd(x, 1, group).square().sum().backward()
        assert x.grad.tolist() == [[0, 2], [4, 6]]
        with pytest.raises(ValueError, match="no permutation"):
            collectives.permute_tensor(x, [1], group)
    finally:
        torch.distributed.destroy_process_group()


def test_devices_that_are_absent():
    assert torch.xpu.get_rng_state_all() == [] and not torch.xpu.is_available()
    for call in (torch.xpu.current_device, torch.xpu.synchronize, torch.xpu.get_device_name):
        with pytest.raises(NotImplementedError, match="JAX has found no such device"):
            call()
    with torch.xpu.device(None):
        pass
    with pytest.raises(NotImplementedError, match="no such device"), torch.xpu.device(0):
        pass
    assert torch._C._get_accelerator().type == torch._C._get_default_device()
    assert torch.backends.quantized.supported_engines == ["qnnpack", "onednn", "x86", "fbgemm"]
    with pytest.raises(RuntimeError, match="without MPS"):
        torch.backends.mps.is_macos_or_newer(13, 0)


def test_small_names():
    assert torch.amp.grad_scaler.OptState.UNSCALED.value == 1
    cast = torch.amp.autocast_mode._cast([torch.ones(1), 2], "cpu", torch.float64)
    assert cast[0].dtype is torch.float64 and cast[1] == 2
    text = torch._tensor_str._str_intern(torch.ones(2).double(), tensor_contents="a, b")
    assert text == "tensor(a, b, dtype=torch.float64)"
    assert torch._dynamo.eval_frame.is_dynamo_supported()
    assert torch.nn.init._no_grad_fill_(torch.empty(2), 3.0).tolist() == [3, 3]
    for dtype in (torch.uint1, torch.int7):
        x = torch.zeros(1, dtype=dtype)
        assert x.dtype is dtype and x.element_size() == 1


def test_indices_that_are_tensors():
    from jaxgrad._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    x = torch.arange(12).reshape(3, 4)
    rows, columns = torch.tensor([2, 0, 1]), torch.tensor([1, 1, 3])
    with TransformGetItemToIndex():
        result = torch.vmap(lambda row, column: x[row, column])(rows, columns)
    assert result.tolist() == x.numpy()[[2, 0, 1], [1, 1, 3]].tolist()


def test_no_tensor_is_fake():
    from jaxgrad._subclasses.fake_tensor import FakeTensor, is_fake

    for x in (torch.ones(1), torch.ones(1, device="meta"), 1):
        assert not is_fake(x) and not isinstance(x, FakeTensor)


def test_weak_references_to_tensors():
    x = torch.ones(2)
    reference = torch._C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    assert reference.expired()


def test_functions_in_place_by_the_names_of_the_library():
    x = torch.tensor([-1.0, 0.0, 1.0])
    expected = torch.nn.functional.gelu(x)
    assert importlib.import_module("jaxgrad._C._nn") is torch._C._nn
    assert torch._C._nn.gelu_(x) is x and x.equal(expected)


def test_nodes_without_a_gradient():
    functions, seen = torch._C._functions, []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x

        @staticmethod
        def backward(ctx, gradient):
            seen.append(gradient)
            return gradient, None

    x = torch.ones(1, requires_grad=True)
    functions.UndefinedGrad()(Identity.apply(x, False)).backward()
    assert seen == [None] and x.grad is None
    functions.UndefinedGrad()(Identity.apply(x, True)).backward()
    assert seen[1].tolist() == x.grad.tolist() == [0]
    first, second = functions.DelayedError("not twice", 2)(x * 2, x)
    assert first.tolist() == [2] and second.tolist() == [1]
    with pytest.raises(RuntimeError, match="not twice"):
        second.backward()


@as_torch("""
    [True, False, False, 'privateuseone']
    [False, True, [True, False]]
    [True, False]
    ['x86_64', True]
    True
    True
""")
def test_names_of_the_library_that_test_suites_call(torch):
    C = torch._C
    states = C._TorchFunctionState
    with C.DisableTorchFunctionSubclass():
        inside = C._get_torch_function_state() == states.ENABLED
    before = C._get_torch_function_state()
    C._set_torch_function_state(states.SUBCLASSES_DISABLED)
    changed = C._is_torch_function_enabled()
    C._set_torch_function_state(before)
    with torch.utils._mode_utils.no_dispatch():
        same = [torch.utils._mode_utils.all_same_mode(x) for x in ([None, None], [None, 1])]
    capabilities = torch.cpu.get_capabilities()
    return [
        [before == states.ENABLED, inside, changed, C._get_privateuse1_backend_name()],
        [bool(torch._utils._is_privateuse1_backend_available()), C.has_lapack, same],
        [
            capabilities["avx2"] == torch.cpu._is_avx2_supported(),
            torch.cpu._is_amx_fp16_supported(),
        ],
        [capabilities["architecture"], C._get_cpu_capability() == "AVX512"],
        isinstance(torch.ops.aten.add.Tensor, torch._ops.OpOverload),
        isinstance(torch.ops.aten.add, torch._ops.OpOverloadPacket),
    ]


@as_torch("""
    [0, 1, 2, 1]
    ['mean', 'sum']
    ValueError('x is not a valid value for reduction')
""")
def test_reductions_by_numbers(torch):
    module = importlib.import_module(f"{torch.__name__}.nn._reduction")
    with warnings.catch_warnings(action="ignore"):
        numbers = [module.get_enum(name) for name in ("none", "mean", "sum", "elementwise_mean")]
        texts = [module.legacy_get_string(*pair) for pair in ((None, True), (False, None))]
    return [numbers, texts, error(module.get_enum, "x", words="is not a valid value for reduction")]


@as_torch("""
    tensor([[2.0, 5.0]])
    tensor([[0.0, 0.0]])
    tensor([[5.0, -3.0]])
    tensor([[0.5, 0.5]])
    tensor(4.0)
    tensor([1.0, 4.0])
    tensor([[1, 4]], dtype=int32)
    tensor([[0.0, 0.0]])
""")
def test_references_are_the_operators(torch):
    refs, x = importlib.import_module(f"{torch.__name__}._refs"), torch.tensor([[1.0, 4.0]])
    return [
        refs.add(x, 1),
        refs.nn.functional.relu(-x),
        refs.fft.fft(x).real,
        refs.special.expit(0 * x),
        refs.linalg.norm(x, 1),
        refs.view(x, (2,)),
        refs._conversions.int(x),
        refs.zero(x),
    ]


@as_torch("""
    [False, False, False, False, False, False, False, False, False, False, False, False, False]
    [True, True, True, True, True, True, True, True, True]
    [False, True]
    ['aten.silu', 'aten.view', 'aten.sigmoid_backward']
    tensor(0.0)
""")
def test_operators_that_are_no_functions_of_torch(torch):
    names = (
        "zero silu gelu view to expand linear mse_loss one_hot add_ copy_ slice sigmoid_backward"
    )
    public = "relu relu_ conv2d rsub native_dropout adaptive_avg_pool1d _softmax eig index_put_"
    packets = (torch.ops.aten.silu, torch.ops.aten.view, torch.ops.aten.sigmoid_backward)
    return [
        [hasattr(torch, name) for name in names.split()],
        [hasattr(torch, name) for name in public.split()],
        [hasattr(torch, "_foreach_zero"), hasattr(torch, "_foreach_zero_")],
        [str(packet) for packet in packets],
        packets[0](torch.tensor(0.0)),
    ]


def test_copies_of_operators_of_the_user_are_the_operators():
    with torch.library._scoped_library("private_names", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        packet = torch.ops.private_names.f
        assert copy.deepcopy({"op": packet, "default": packet.default}) == {
            "op": packet,
            "default": packet.default,
        }
