"""The program that test_idioms.py runs in its own process: short programs as users of CUDA write
them, on devices of the CPU in the place of four GPUs. It prints what they give.

Argument: "moved", where the first device is the CPU, as PyTorch has it, or "default", where the
first GPU is JAX's default device.
"""

import io
import json
import pickle
import sys
import threading
import warnings

import jax

DEVICES = jax.local_devices()
GPUS, CPUS = (DEVICES[1:], DEVICES[:1]) if sys.argv[1] == "moved" else (DEVICES[:-1], DEVICES[-1:])
KNOWN = {"gpu": GPUS, "cpu": CPUS, None: CPUS if sys.argv[1] == "moved" else GPUS}


def local_devices(backend=None):
    if backend in KNOWN:
        return KNOWN[backend]
    raise RuntimeError(backend)


jax.local_devices = local_devices

import jaxgrad as torch  # noqa: E402 - it reads the devices
from jaxgrad import cuda, nn  # noqa: E402

F = nn.functional
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def places(*tensors):
    return [str(tensor.device) for tensor in tensors]


def error_of(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@program
def semantics():
    """What PyTorch's page about CUDA shows first."""
    x, y = torch.tensor([1.0, 2.0], device=torch.device("cuda:0")), torch.tensor([1.0, 2.0]).cuda()
    with cuda.device(1):
        a, b = torch.tensor([1.0, 2.0], device=torch.device("cuda")), torch.ones(2).cuda()
        c = torch.tensor([1.0, 2.0]).to(device="cuda")
        d, e = torch.randn(2, device="cuda:2"), torch.randn(2).cuda(torch.device("cuda:2"))
        return places(x, y, x + y, a, b, c, a + b, d, e)


@program
def indices_of_devices():
    x = torch.ones(2, device=1)
    same = x.to("cuda:1") is x, x.cuda(1) is x, x.device == torch.device("cuda", 1)
    like = x.to(2), x.new_zeros(1), torch.empty_like(x), torch.zeros_like(x, device="cuda:0")
    return [x.get_device(), x.cpu().get_device(), *same, *places(*like)]


@program
def streams():
    """A block of a stream has its device; events and waits change nothing."""
    side, event = cuda.Stream(device=1), cuda.Event(enable_timing=True)
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        inside = places(torch.ones(1, device="cuda")), cuda.current_stream() == side
        with cuda.stream(cuda.Stream(2)):
            deeper = cuda.current_device()
    cuda.current_stream().wait_stream(side)
    event.record(side), side.record_event(), event.wait(side)
    x = torch.ones(2).cuda()
    x.record_stream(side)
    after = [cuda.current_device(), event.query(), event.elapsed_time(event)]
    cuda.set_stream(side)
    return [inside, deeper, after, cuda.current_device(), str(cuda.current_stream().device)]


@program
def prefetching():
    """The loader that copies the next batch in a stream of its own."""
    stream, batches, total = cuda.Stream(), iter([torch.ones(2), torch.ones(2) * 2]), 0.0

    def following():
        with cuda.stream(stream):
            batch = next(batches, None)
            return None if batch is None else batch.cuda(non_blocking=True)

    batch = following()
    while batch is not None:
        cuda.current_stream().wait_stream(stream)
        batch.record_stream(cuda.current_stream())
        total += batch.sum().item()
        batch = following()
    return total


@program
def threads():
    devices = {}

    def work(index):
        cuda.set_device(index)
        devices[index] = places(torch.ones(1, device="cuda"))

    workers = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [*(devices[index] for index in range(4)), cuda.current_device()]


@program
def default_devices():
    torch.set_default_device("cuda:1")
    first = places(torch.ones(1), nn.Linear(1, 1).weight, torch.arange(3), torch.tensor(1.0))
    with torch.device("cuda:2"):
        first += places(torch.rand(1), nn.Conv2d(1, 1, 1).weight, torch.zeros(1, device="cpu"))
    torch.set_default_device(None)
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    return [*first, *places(layer.to_empty(device="cuda:3").weight)]


@program
def names_of_types():
    x = torch.ones(1)
    with warnings.catch_warnings(action="ignore"):
        moved = x.type("torch.cuda.HalfTensor"), x.type(cuda.FloatTensor), cuda.LongTensor([1])
    back = moved[1].type("torch.FloatTensor")
    return [*places(*moved, back), *(y.type() for y in (*moved, back))]


@program
def amp():
    """The loop of PyTorch's recipe, with the old and the new names."""
    results = []
    for scaler, cast in (
        (cuda.amp.GradScaler(init_scale=8.0), cuda.amp.autocast()),
        (torch.amp.GradScaler("cuda", init_scale=8.0), torch.autocast("cuda", torch.bfloat16)),
    ):
        model = nn.Linear(3, 2).cuda(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with cast:
            output = model(torch.ones(4, 3, device="cuda:1"))
            loss = F.mse_loss(output.float(), torch.zeros_like(output).float())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        results += [str(output.dtype), scaler.get_scale(), *places(loss, model.weight.grad)]
    return results


@program
def several_gpus():
    model = nn.Linear(3, 2)
    if cuda.device_count() > 1:
        model = nn.DataParallel(model)
    model.to("cuda:0")
    output = model(torch.ones(8, 3).to("cuda:0"))
    ids = nn.DataParallel(nn.Identity(), device_ids=["cuda:2", 1]).device_ids
    return [model.device_ids, ids, list(output.shape), *places(output)]


@program
def parts_of_a_model():
    """Layers on two GPUs, by a map of devices, with one norm of all gradients."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    for name, place in {"0": 0, "1": "cuda:1"}.items():
        model.get_submodule(name).to(place)
    hidden = model[0](torch.ones(4, 2).to(0)).relu()
    loss = F.mse_loss(model[1](hidden.to("cuda:1")), torch.zeros(4, 1).to(1))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.optim.AdamW(model.parameters(), foreach=True).step()
    return places(loss, norm, *(p.grad for p in model.parameters()), *model.parameters())


@program
def moved_after_the_optimizer():
    model = nn.BatchNorm1d(2)
    optimizer = torch.optim.Adam(model.parameters())
    model.cuda(1)
    model(torch.ones(3, 2, device="cuda:1")).sum().backward()
    optimizer.step()
    state = optimizer.state[model.weight]["exp_avg"]
    averaged = torch.optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    return places(model.running_mean, state, averaged.module.weight, model.cpu().running_var)


@program
def files():
    file, results = io.BytesIO(), []
    torch.save({"x": torch.ones(2, device="cuda:1")}, file)
    moves = {"cuda:1": "cpu"}, {"cuda:1": "cuda:2"}, lambda storage, _: storage.cuda(3)
    for place in ("cpu", *moves, "cuda:0", None):
        file.seek(0)
        results += places(torch.load(file, map_location=place)["x"])
    x = torch.ones(2, device="cuda:1")
    return results + places(pickle.loads(pickle.dumps(x)), nn.Parameter(x).data, x.clone())


@program
def random_numbers():
    torch.manual_seed(0)
    cuda.manual_seed_all(0)
    state = cuda.get_rng_state("cuda:1")
    first = torch.randn(3, device="cuda:1")
    cuda.set_rng_state(state, "cuda:1")
    again = torch.randn(3, device="cuda:1")
    generator = torch.Generator(device="cuda:1").manual_seed(5)
    drawn = torch.rand(2, device="cuda:1", generator=generator)
    with torch.random.fork_rng(devices=[0, 1]):
        torch.manual_seed(1)
    counts = len(cuda.get_rng_state_all()), len(cuda.default_generators)
    return [torch.equal(first, again), str(generator.device), *places(drawn), *counts]


@program
def memory():
    x = torch.ones(2, device="cuda:1")
    del x
    cuda.empty_cache(), cuda.reset_peak_memory_stats(1), cuda.ipc_collect()
    cuda.reset_accumulated_memory_stats()
    numbers = [cuda.memory_allocated(1), cuda.max_memory_allocated("cuda:1")]
    numbers += [cuda.memory_reserved(), cuda.max_memory_reserved(torch.device("cuda:2"))]
    return [numbers, cuda.memory_summary(1).splitlines(), list(cuda.mem_get_info())]


@program
def too_large():
    """A batch that is halved until it fits, as programs do."""
    tries = []
    for size in (10**14, 3):
        try:
            tries.append((torch.ones(size, device="cuda:1") * 2).sum().item())
            break
        except cuda.OutOfMemoryError as error:
            tries.append("CUDA out of memory." in str(error))
    missing = error_of(lambda: cuda.set_device(9))
    return [*tries, missing.startswith("JaxRuntimeError: CUDA error: invalid device ordinal")]


@program
def properties():
    names = {cuda.get_device_name(place) for place in (0, "cuda:1", torch.device("cuda"))}
    about = cuda.get_device_properties("cuda:1")
    return [len(names), about.name in names, about.total_memory, cuda.get_device_capability(1)]


@program
def backends():
    cudnn, of_cuda = torch.backends.cudnn, torch.backends.cuda
    cudnn.benchmark = cudnn.deterministic = True
    with cudnn.flags(enabled=False):
        inside = cudnn.enabled
    of_cuda.enable_flash_sdp(True)
    flags = inside, cudnn.benchmark, cudnn.deterministic, of_cuda.flash_sdp_enabled()
    cudnn.benchmark = cudnn.deterministic = False
    torch.use_deterministic_algorithms(True)
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    return [*flags, is_deterministic]


@program
def accelerator():
    module = torch.accelerator
    device = module.current_accelerator()
    with module.device_index(2):
        inside = module.current_device_index()
    with torch.Stream("cuda:1"):
        streamed = module.current_device_index()
    module.synchronize()
    current = torch.get_device_module(device) is cuda, str(module.current_stream().device)
    return [device.type, module.device_count(), inside, streamed, *current]


@program
def wrong_devices():
    x, p = torch.ones(2, device="cuda:0"), nn.Parameter(torch.ones(2, device="cuda:1"))
    calls = (
        lambda: setattr(p, "grad", x),
        lambda: setattr(p, "grad", x.cpu()),
        lambda: x.cuda("cpu"),
        lambda: cuda.device("cpu"),
        lambda: cuda.memory_allocated("cpu"),
        lambda: F.linear(x, torch.ones(1, 2, device="cuda:1")),
        lambda: torch.stack([x, p]),
        lambda: nn.LSTM(2, 2).cuda(1)(torch.ones(1, 1, 2, device="cuda:0")),
    )
    return [error_of(call) for call in calls]


@program
def sizes_by_values():
    """Results whose sizes depend on numbers are where the numbers are."""
    x = torch.tensor([3.0, 0.0, 3.0], device="cuda:1")
    counts = torch.tensor([1, 2], device="cuda:1")
    results = [x.nonzero(), *torch.where(x), torch.argwhere(x), x[x > 0], x.masked_select(x > 0)]
    results += torch.unique(x, return_inverse=True, return_counts=True)
    results += torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    results += [torch.repeat_interleave(counts), x.repeat_interleave(2), torch.bincount(counts)]
    return sorted({*places(*results)})


@program
def lengths_on_the_cpu():
    """The lengths of `ctc_loss` and of sequences are on the CPU, as PyTorch wants those."""
    scores = torch.zeros(2, 1, 2, device="cuda:1").requires_grad_()
    one, two = torch.tensor([1]), torch.tensor([2])
    losses = [
        F.ctc_loss(scores.log_softmax(-1), labels, times, count)
        for labels, times, count in (
            (one[None].to("cuda:1"), two, one),
            (one[None].to("cuda:1"), two.cpu(), one.cpu()),
            (one.to("cuda:1"), [2], [1]),
        )
    ]
    sum(losses).backward()
    rows = torch.ones(3, 2, 1, device="cuda:1")
    packed = nn.utils.rnn.pack_padded_sequence(rows, torch.tensor([3, 1]))
    output, _ = nn.LSTM(1, 2).cuda(1)(packed)
    numbers = [round(loss.item(), 4) for loss in losses]
    return [numbers, *places(scores.grad, output.data, packed.data), packed.is_cuda]


@program
def saved_and_repeated():
    x = torch.full((2,), 2.0, device="cuda:1", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    z = torch.utils.checkpoint.checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False)
    z.backward()
    return [x.grad.tolist(), *places(x.grad, torch.compile(lambda x: x * 2)(x))]


def main():
    results = {}
    for name, function in PROGRAMS.items():
        results[name] = function()
        cuda.set_device(0)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
