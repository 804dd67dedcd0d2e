"""Names of PyTorch that programs use around their computation."""

import pickle
import typing

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch
from jaxgrad.torch_version import TorchVersion


def test_names_of_torch_jit_leave_functions_as_they_are():
    def double(x):
        return x * 2

    jit = torch.jit
    for mark in (jit.script, jit.ignore, jit.unused, jit.export, jit.interface):
        assert mark(double) is double
    assert jit.ignore(drop=True)(double) is double and jit.trace(double, (1,))(4) == 8
    assert not jit.is_scripting() and not jit.is_tracing() and jit.Final is typing.Final
    assert jit.annotate(int, 3) == 3 and jit.script_method(double) is double
    assert jit(double)(torch.ones(2)).tolist() == [2, 2]  # it is the compiler itself
    traced = jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2))
    assert list(traced.state_dict()) == ["weight", "bias"] and traced(torch.ones(1, 2)).shape == (
        1,
        1,
    )
    assert jit.freeze(traced.eval()) is jit.optimize_for_inference(traced) is traced


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ([1, 2], typing.List[int], True),  # noqa: UP006
        ([1, "a"], list[int], False),
        ({"a": [1]}, dict[str, list[int]], True),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        (None, typing.Optional[int], True),  # noqa: UP045
        ("a", typing.Union[int, float], False),  # noqa: UP007
        ([], list[int], True),
        (3, (int, str), True),
    ],
)
def test_types_of_torch_jit(value, kind, expected):
    assert torch.jit.isinstance(value, kind) is expected


def test_other_names_of_torch_jit():
    jit = torch.jit

    class Net(jit.ScriptModule):
        @jit.script_method
        def forward(self, x):
            return x * 2

    assert isinstance(Net(), torch.nn.Module) and Net()(torch.ones(1)).item() == 2
    assert not isinstance(torch.nn.Linear(1, 1), jit.ScriptModule)
    future = jit.fork(lambda x: x + 1, 2)
    assert jit.wait(future) == 3 and future.then(lambda source: source.wait() * 2).value() == 6
    with pytest.raises(RuntimeError, match="nothing has set the result"):
        jit.Future[int]().wait()
    with jit.optimized_execution(False), jit.strict_fusion():
        assert jit.Attribute(1, int).value == 1 and issubclass(jit.Error, RuntimeError)
    assert not jit.onednn_fusion_enabled() and jit.export_opnames(Net()) == []
    for name in ("CompilationUnit", "last_executed_optimized_graph"):
        with pytest.raises(NotImplementedError, match=rf"torch\.(jit\.)?{name} is not provided"):
            getattr(jit, name)()


def test_modules_that_are_not_provided_say_so_when_called():
    class Mapping(torch.ao.quantization.Granularity):
        pass

    assert not isinstance(3, torch.ao.quantization.Granularity)
    mapping = torch.ao.quantization.qconfig_equals
    for call in (torch.onnx.ops.symbolic, mapping, Mapping):
        with pytest.raises(NotImplementedError, match="is not provided by jaxgrad: "):
            call()


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (
            lambda: torch.Tensro,
            "module 'jaxgrad' has no attribute 'Tensro': not provided by .*'Tensor'",
        ),
        (lambda: torch.optim.Adm, "module 'jaxgrad.optim' has no attribute 'Adm': .*'Adam'"),
        (lambda: torch.nn.modules.conv.Conv22d, "has no attribute 'Conv22d': .*'Conv2d'"),
        (lambda: torch._scaled_grouped_mm, "not provided by jaxgrad"),
    ],
)
def test_names_that_are_missing(find, text):
    with pytest.raises(AttributeError, match=text):
        find()
    assert not hasattr(torch, "Tensro")


def test_versions_compare_by_their_numbers():
    version = torch.version.__version__
    assert version == "2.13.0" and version == (2, 13) and version > "2.9" and version >= (2, 13)
    assert "2.9.1" < version < "10.0" and not version <= "2.12.9+cpu" and version != "2.13.1"
    assert isinstance(version, str) and pickle.loads(pickle.dumps(version)) == version
    assert version != 2.13
    with pytest.raises(ValueError, match="Invalid version: 'new'"):
        TorchVersion.__gt__(version, "new")


def test_backends_and_devices_that_are_not_there():
    backends = torch.backends
    backends.cudnn.benchmark = True
    with backends.cudnn.flags(enabled=False):
        assert not backends.cudnn.enabled
    assert backends.cudnn.enabled and backends.cudnn.benchmark
    backends.cudnn.benchmark = False
    assert not (backends.mps.is_available() or backends.mps.is_built() or torch.mps.is_available())
    assert torch.cuda.is_available() == backends.cudnn.is_available()
    assert torch.cuda.device_count() == 0 and not torch.cuda.is_initialized()
    for call in (torch.cuda.current_device, torch.cuda.synchronize, torch.cuda.mem_get_info):
        with pytest.raises(RuntimeError, match="there is no device cuda: JAX found cpu"):
            call()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_name("cpu")
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.manual_seed_all(3)
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        torch.cuda.Event().elapsed_time(torch.cuda.Event())


def test_constants():
    assert (torch.newaxis, torch.inf) == (None, float("inf")) and torch.nan != torch.nan
    assert (round(torch.pi, 8), round(torch.e, 8)) == (3.14159265, 2.71828183)


def test_accelerator():
    accelerator = torch.accelerator
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None
    accelerator.synchronize("cpu")
    for call in (accelerator.synchronize, accelerator.current_device_index):
        with pytest.raises(RuntimeError, match="there is no accelerator"):
            call()


def test_assert():
    torch._assert(torch.ones(2).sum() == 2, "not shown")
    with pytest.raises(AssertionError, match="the sum is 2"):
        torch._assert(torch.ones(2).sum() > 2, "the sum is 2")


# ---- modules that are not provided


def test_modules_that_are_not_provided_have_the_names_of_pytorch():
    from jaxgrad.export import CustomDecompTable as Table
    from jaxgrad.export import draft_export

    assert Table.one.path == "torch.export.CustomDecompTable.one" and not isinstance(3, Table)
    with pytest.raises(
        NotImplementedError, match=r"export.draft_export is not provided by jaxgrad"
    ):
        draft_export(torch.nn.Identity(), ())
    with pytest.raises(NotImplementedError, match=r"CommDebugMode is not provided"):
        torch.distributed.tensor.debug.CommDebugMode()
    assert "ShapeEnv" in dir(torch.fx.experimental.symbolic_shapes)
    assert issubclass(torch.onnx.errors.OnnxExporterError, Exception)
    assert issubclass(torch.jit.TracerWarning, Warning) and issubclass(
        torch.jit.Error, RuntimeError
    )
    for module, name in ((torch.fx, "Grpah"), (torch.export, "exprot"), (torch.onnx, "_private")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': not provided"):
            getattr(module, name)
    with pytest.raises(AttributeError, match=r"'exprot': .* did you mean 'export'"):
        _ = torch.export.exprot
    assert isinstance(torch.UntypedStorage, type) and not isinstance(3, torch.TensorType)
    assert not hasattr(torch, "npu") and not hasattr(torch, "Tensr")


def test_what_programs_prepare_for_an_export_has_no_effect():
    @torch.onnx.symbolic_helper.parse_args("v", "i")
    def symbolic(g, x):
        return x

    assert symbolic(None, 3) == 3 and not torch.onnx.is_in_onnx_export()
    torch.onnx.register_custom_op_symbolic("a::b", symbolic, 11)
    with pytest.raises(OSError, match="is for PyTorch's own library, and is not loaded"):
        torch.ops.load_library("/somewhere/visionlike/_C.so")
    torch.library.register_fake("visionlike::nms")(symbolic)  # of what was not loaded
    with pytest.raises(RuntimeError, match="operator otherlike::nms does not exist"):
        torch.library.register_fake("otherlike::nms")(symbolic)


def test_processes_that_train_together():
    distributed = torch.distributed
    asked = (distributed.is_initialized, distributed.is_torchelastic_launched)
    assert not any(ask() for ask in asked)
    assert distributed.is_available() and distributed.is_gloo_available()
    for call in (distributed.get_rank, distributed.get_world_size):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        distributed.init_process_group("gloo")
    with pytest.raises(NotImplementedError, match=r"distributed.FileStore is not provided"):
        distributed.FileStore("store", 1)


def test_names_of_the_compilers_of_pytorch():
    dynamo = torch._dynamo
    dynamo.config.suppress_errors = True
    with dynamo.config.patch(suppress_errors=False, verbose=True):
        assert dynamo.config.verbose and not dynamo.config.suppress_errors
    assert dynamo.config.suppress_errors and not dynamo.config.verbose
    torch._inductor.config.triton.cudagraphs = True
    assert torch._inductor.config.triton.cudagraphs and not torch.compiler.config.anything
    double = lambda x: x * 2  # noqa: E731
    for mark in (dynamo.allow_in_graph, torch.compiler.nested_compile_region):
        assert mark(double) is double
    assert dynamo.disable(double)(3) == 6
    assert torch.compiler.substitute_in_graph(len)(double) is double
    dynamo.mark_dynamic(torch.ones(2), 0)
    dynamo.mark_static_address(torch.ones(2))
    compiled = torch.compile(torch.nn.Identity())
    assert isinstance(compiled, dynamo.OptimizedModule) and not dynamo.is_compiling()
    assert dynamo.eval_frame.OptimizedModule is dynamo.OptimizedModule
    assert (
        torch._C._get_tracing_state() is None and torch._C._jit_set_profiling_mode(False) is False
    )


def test_functions_that_fork_run_at_once():
    future = torch.jit.fork(lambda x, by=2: x * by, 3, by=4)
    assert torch.jit.wait(future) == future.value() == 12 and future.done()
    with torch.jit.strict_fusion(), torch.jit.fuser("fuser2"):
        torch.jit.set_fusion_strategy([("STATIC", 2)])
    assert torch.jit._script_if_tracing(len) is len and torch.jit.script_method(len) is len


def test_operators_by_the_names_of_the_table():
    aten, x = torch.ops.aten, torch.tensor([1.0, 2.0], requires_grad=True)
    aten.mul.Tensor(x, x).sum().backward()
    assert x.grad.tolist() == [2, 4] and aten.mul.Tensor is aten.mul.Tensor
    assert repr(aten.add.Tensor) == "aten.add.Tensor" and aten.relu(torch.tensor(-1.0)) == 0
    assert aten.sym_size.int(x, 0) == 2
    refusal = r"aten._cslt_compress.default is not provided by jaxgrad"
    with pytest.raises(NotImplementedError, match=refusal):
        aten._cslt_compress.default(x)


# ---- devices that are not there, streams, checks


def test_devices_that_jax_does_not_use():
    for module in (torch.xpu, torch.mps, torch.mtia):
        assert not module.is_available() and module.device_count() == 0
        module.manual_seed(3)
        with pytest.raises(NotImplementedError, match="JAX has found no"):
            module.synchronize()
        assert torch.get_device_module(module.__name__.rpartition(".")[2]) is module
    for name in ("empty_cache", "seed", "get_rng_state", "current_allocated_memory", "Event"):
        with pytest.raises(RuntimeError, match="JAX has found no"):
            getattr(torch.mps, name)()
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch.get_device_module("hpu")
    assert torch.xpu.memory_allocated() == 0 and not torch.xpu.is_bf16_supported()
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    torch.cpu.synchronize()
    x = torch.ones(1)
    assert not (x.is_mps or x.is_xpu or x.is_quantized or x.is_nested or x.is_mkldnn)
    assert not any(torch.is_autocast_enabled(name) for name in ("mps", "xpu", "hpu"))
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'toaster'"):
        torch.is_autocast_enabled("toaster")


def test_streams_and_events():
    first, second = torch.Event(), torch.cpu.Event(enable_timing=True)
    with torch.Stream("cpu") as stream, torch.cpu.stream(torch.cpu.current_stream()):
        stream.record_event(first)
        stream.wait_event(first)
    stream.synchronize()
    second.record()
    assert first.query() and first.elapsed_time(second) >= 0 and stream.query()
    assert stream.device == torch.device("cpu") and isinstance(torch.cpu.Stream(), torch.Stream)
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        first.elapsed_time(torch.Event("cpu"))
    assert issubclass(torch.cuda.Stream, torch.Stream) and issubclass(torch.cuda.Event, torch.Event)


def test_names_of_gpus_where_there_is_none():
    cuda = torch.cuda
    assert cuda.get_rng_state_all() == [] and cuda.get_arch_list() == []
    assert cuda.random.get_rng_state_all() == [] and cuda.reset_max_memory_cached() is None
    cuda.set_rng_state_all([])
    state = cuda.get_rng_state()
    first = torch.rand(2)
    cuda.set_rng_state(state)
    assert (torch.rand(2) == first).all() and not cuda.is_current_stream_capturing()
    with cuda.device(None), cuda.device_of(first), cuda.device(-1):
        cuda.reset_peak_memory_stats()
    assert cuda.memory_stats() == {} and cuda.max_memory_allocated(0) == cuda.memory_reserved() == 0
    for call in (
        lambda: cuda.device(0).__enter__(),
        cuda.get_device_properties,
        cuda.memory_summary,
    ):
        with pytest.raises(RuntimeError, match="there is no device cuda"):
            call()
    with pytest.raises(NotImplementedError, match=r"jaxgrad has no CUDAGraph"):
        cuda.CUDAGraph()
    assert cuda.nvtx.range_push("a") == 0 and cuda.nvtx.range_push("b") == 1
    assert cuda.nvtx.range_pop() == 1 and cuda.nvtx.range_pop() == 0 and cuda.nvtx.range_pop() == -1
    cuda.nvtx.range_end(cuda.nvtx.range_start("c"))
    with cuda.nvtx.range("step {}", 3):
        cuda.nvtx.mark("here")
    assert cuda.memory.memory_stats is cuda.memory_stats
    assert not isinstance(first, cuda.FloatTensor)
    with pytest.raises(torch.OutOfMemoryError):
        raise torch.cuda.OutOfMemoryError("RESOURCE_EXHAUSTED")


def test_more_names_of_gpus_where_there_is_none():
    """The values are those of PyTorch 2.13 for CPUs."""
    cuda, backends = torch.cuda, torch.backends
    with pytest.warns(FutureWarning, match="has been renamed to `torch.cuda.memory_reserved`"):
        assert cuda.memory_cached() == 0
    assert cuda.memory_stats_as_nested_dict() == cuda.host_memory_stats() == {}
    assert cuda.get_gencode_flags() == "" and not cuda.is_tf32_supported()
    assert cuda.has_half and not cuda.has_magma and not cuda._is_in_bad_fork()
    calls = []
    assert cuda._lazy_call(lambda: calls.append(1)) is None and not calls
    for call in (
        lambda: cuda.can_device_access_peer(0, 1),
        lambda: cuda.set_per_process_memory_fraction(2.0),
        cuda.get_per_process_memory_fraction,
        lambda: cuda.set_sync_debug_mode("x"),
        cuda.get_sync_debug_mode,
        cuda._lazy_init,
    ):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    index = cuda._utils._get_device_index
    assert (index("cuda:1"), index(3), index("cpu", allow_cpu=True)) == (1, 3, -1)
    for place, text in (
        (None, "with a specified index or an integer, but got:None"),
        ("cpu", "cpu"),
    ):
        with pytest.raises(ValueError, match=f"Expected a .*{text}"):
            index(place)
    assert backends.cuda.cufft_plan_cache.size == 0 and not backends.cuda.is_ck_sdpa_available()
    with pytest.raises(RuntimeError, match="expected 0 <= device index < 0, but got device with"):
        backends.cuda.cufft_plan_cache[0]
    assert backends.nnpack.set_flags(False) == (True,) and backends.nnpack.set_flags(True) == (
        False,
    )
    assert backends.cusparselt.version() is backends.cusparselt.get_max_alg_id() is None
    with pytest.raises(RuntimeError, match="without MPS backend"):
        backends.mps.is_macos13_or_newer()
    with pytest.raises(RuntimeError, match="when none is available"):
        torch.accelerator.empty_host_cache()
    with pytest.raises(NotImplementedError, match="save_device_memory_profile"):
        cuda.memory._record_memory_history()


def test_an_accelerator_that_is_not_there():
    accelerator = torch.accelerator
    for call in (accelerator.memory_allocated, accelerator.current_stream):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is av"):
            call()
    accelerator.empty_cache()
    with accelerator.device_index(None):
        pass
    assert accelerator.memory_stats("cpu") == {} and accelerator.get_memory_info("cpu") == (0, 0)


def test_types_for_annotations():
    types = torch.types
    assert isinstance(3, types.Number) and torch.device in types.Device.__args__
    assert types.py_sym_types == (torch.SymInt, torch.SymFloat, torch.SymBool)
    assert not isinstance(3, torch.SymInt) and types.Tensor is torch.Tensor is torch._tensor.Tensor
    with pytest.raises(TypeError, match="sizes and numbers are Python's here"):
        torch.SymInt(3)
    assert torch.functional.einsum is torch.einsum
    assert torch._utils._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a non cpu device"):
        torch._utils._get_device_index("cpu")
    assert "jaxgrad: " in torch.__config__.show() and "CPUs" in torch.__config__.parallel_info()


@as_torch
def test_checks_and_sizes(torch):
    y = torch.tensor(0.0)
    results = [
        torch.sym_max(1, 2.0),
        torch.sym_max(3, 2.0),
        torch.sym_min(1, 2),
        torch.sym_int(-2.7),
        torch.sym_float(2),
        torch.sym_not(True),
        torch.sym_ite(True, 1, 2),
        torch.sym_sum([1, 2]),
        torch.sym_sqrt(4),
        torch._check(True),
        torch._shape_as_tensor(torch.ones(2, 3)),
        torch._assert_async(torch.tensor(True)),
    ]
    m = lambda: "told"  # noqa: E731
    errors = [
        error(lambda: torch._check(False, m)),
        error(lambda: torch._check_value(False, m)),
        error(lambda: torch._check_type(False, m)),
        error(lambda: torch._check_index(False, m)),
        error(lambda: torch._check_not_implemented(False, m)),
        error(lambda: torch._check_with(KeyError, False, m)),
        error(lambda: torch._check(False), words="Expected cond to be True"),
        error(lambda: torch._check(y), words="cond must be a bool, but got"),
        error(lambda: torch._check(False, "m"), words="message must be a callable"),
        error(lambda: torch._check_tensor_all(y)),
        error(lambda: torch._check_tensor_all(y > 0), words="Expected cond to be True"),
        error(lambda: torch._assert_async(y)),
        error(lambda: torch._assert_async(y, "told")),
        error(lambda: torch._check_tensor_all_with(KeyError, y > 0, m)),
        error(lambda: torch._check_tensor_all_with(KeyError, True), words="must be a tensor"),
        error(lambda: torch._check_with(UserWarning, False, m), words="Exception but not Warning"),
        error(lambda: torch._check_with(int, False, m), words="Exception but not Warning"),
    ]
    return results, errors


def test_checks_of_values_that_are_not_known_pass():
    checked = torch.jit(lambda x: (torch._assert_async(x.sum()), x * 2)[1])
    assert checked(torch.zeros(2)).tolist() == [0, 0]


def test_dlpack():
    x = torch.arange(3)
    assert torch.utils.dlpack.from_dlpack(x).tolist() == [0, 1, 2]
    assert "dltensor" in repr(torch.to_dlpack(x))


def test_printing_in_a_block():
    with torch._tensor_str.printoptions(precision=2):
        assert repr(torch.tensor(1.23456)) == "tensor(1.23)"
        assert torch._tensor_str.PRINT_OPTS.precision == 2
    assert repr(torch.tensor(1.23456)) == "tensor(1.2346)"


def test_classes_of_several_results():
    values = torch.tensor([1.0, 3.0]).max(0)
    assert isinstance(values, torch.return_types.max)
    assert torch.return_types.topk is type(torch.ones(3).topk(1))
    for name in ("sin", "nothing", "_linalg_det"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(torch.return_types, name)


def test_names_that_other_packages_take_from_private_modules():
    x = torch.arange(12.0).reshape(3, 4)
    text = torch._tensor_str._tensor_str(x, 6)
    assert f"Index({text})".replace("Index(", "tensor(") == repr(x).replace("\n ", "\n")
    long = torch._tensor_str._add_suffixes("Index([0]", ["a" * 40, "b" * 40], 6, False)
    assert long == f"Index([0], {'a' * 40},\n      {'b' * 40})"
    assert torch._tensor_str._add_suffixes("I(2", ["c"], 2, True) == "I(2,\n  c)"
    group = torch.utils._foreach_utils._group_tensors_by_device_and_dtype
    one, two, three = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
    groups = group([[one, two, three], [None, two, one]], with_indices=True)
    cpu = torch.device("cpu")
    (single, places), (double, place) = groups[cpu, torch.float32], groups[cpu, torch.float64]
    assert places == [0, 2] and single[0][1] is three and single[1] == [None, one] and place == [1]
    assert double[0][0] is two and len(groups) == 2 and group([[one]])[cpu, torch.float32][1] == []
    with pytest.raises(RuntimeError, match="must have one length"):
        group([[one], [one, two]])
    assert typing.get_args(torch.nn.common_types._size_2_t) == (int, tuple[int, int])
    assert torch.cuda._initialized is torch.cuda.is_initialized()


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_older_names_of_settings():
    cuda, backend = torch.backends.cuda, torch.nn.attention.SDPBackend
    q = torch.ones(1, 2, 3)
    with cuda.sdp_kernel(enable_flash=False, enable_math=False):
        assert not cuda.flash_sdp_enabled() and not cuda.math_sdp_enabled()
        assert cuda.mem_efficient_sdp_enabled() and cuda.cudnn_sdp_enabled()
        with pytest.raises(RuntimeError):
            torch.nn.functional.scaled_dot_product_attention(q, q, q)
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled() and cuda.flash_sdp_enabled()
    cuda.enable_math_sdp(True)
    assert {*torch.nn.attention.enabled()} == {*backend} - {backend.ERROR}
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.is_autocast_cpu_enabled()
        assert torch.get_autocast_cpu_dtype() is torch.float16
    assert torch.get_autocast_gpu_dtype() is torch.float16 and not torch.is_autocast_cpu_enabled()


@pytest.mark.slow
def test_numpy_names_of_arguments():
    x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert torch.linalg.norm(x, axis=1).tolist() == [5, 10]
    assert torch.quantile(x, 0.5, axis=1, keepdims=True).tolist() == [[3.5], [7]]
    assert torch.add(x1=x, x2=x).sum().item() == 42 == torch.sum(x=x * 2) == torch.sum(a=x * 2)
    halves = torch.split(x, split_size_or_sections=1, dim=1)
    assert [half.tolist() for half in halves] == [[[3], [6]], [[4], [8]]]
    with pytest.raises(TypeError, match="axes"):
        torch.linalg.norm(x, axes=1)


@as_torch("['nccl', 'str', 'gloo', True]")
def test_names_of_backends(torch):
    backend = torch.distributed.Backend
    return [
        backend("NCCL"),
        type(backend("MPI")).__name__,
        backend.GLOO,
        issubclass(backend, str) and backend.UCC in backend.backend_list,
    ]


def test_layouts():
    x = torch.eye(2)
    for name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        layout = getattr(torch, name)
        assert x.layout != layout != x.to_sparse().layout and repr(layout) == f"torch.{name}"
        assert pickle.loads(pickle.dumps(layout)) is layout
        block = (1, 1) if "bs" in name else None
        assert x.to_sparse(layout=layout, blocksize=block).layout is layout
